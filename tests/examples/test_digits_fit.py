"""The notebooks run, from the first cell to the last, and show what they say."""

import pathlib
import re

import nbclient
import nbformat
import pytest
from support import client_packages

EXAMPLES = pathlib.Path(__file__).parents[2] / "migration_guide" / "examples"
NAMES = ["bert_keras", "digits_fit", "encoder_fit"]
TIMEOUT = 600  # seconds for a cell


def printed(notebook) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output["text"] for output in outputs if output.get("name") == "stdout")


def executed(name):
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(EXAMPLES)}}
    return nbclient.NotebookClient(notebook, timeout=TIMEOUT, resources=resources).execute()


def pictures(notebook):
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output for output in outputs if "image/png" in output.get("data", {})]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_kept_without_outputs(name):
    cells = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.slow
def test_it_fits_plots_and_goes_on_with_train(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    notebook = executed("digits_fit")
    text = printed(notebook)
    [epochs] = re.findall(r"^(\d+) epochs", text, re.MULTILINE)
    fitted, trained, again = map(float, re.findall(r"test accuracy ([\d.]+)", text))
    assert f"model.ckpt-{40 * int(epochs)}\n" in text
    assert f"step {40 * int(epochs) + 100}:" in text
    assert fitted > 0.9
    assert trained > 0.9
    assert again == trained
    assert len(pictures(notebook)) == 1


@pytest.mark.full
def test_an_encoder_fits_and_its_checkpoint_is_the_estimators(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    notebook = executed("encoder_fit")
    text = printed(notebook)
    assert "5 epochs, test accuracy" in text
    assert "bert/layer_0/query/kernel\n" in text
    assert "the estimator at step 400:" in text
    fitted, evaluated = map(float, re.findall(r"test accuracy ([\d.]+)", text))
    assert fitted > 0.9
    assert evaluated == fitted
    assert len(pictures(notebook)) == 1


@pytest.mark.slow
def test_bert_is_led_out_and_trains_on(monkeypatch, clients):
    monkeypatch.setenv("PYTHONPATH", client_packages.environment(clients)["PYTHONPATH"])
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    text = printed(executed("bert_keras"))
    assert "To Keras: equal up to rounding; wrote" in text
    assert "class Bert(layers.Layer):" in text
    [largest] = re.findall(r"predictions differ by (\S+) at most", text)
    assert float(largest) < 1e-5
    trained, led_out, fitted, again = map(float, re.findall(r"test accuracy ([\d.]+)", text))
    assert trained == pytest.approx(led_out, abs=2e-4)  # rounded
    assert trained > 0.7
    assert fitted == again > 0.7
