"""The notebook runs, from the first cell to the last, and shows what it says."""

from __future__ import annotations

import pathlib
import re

import nbclient
import nbformat
import pytest

NOTEBOOK = (
    pathlib.Path(__file__).parents[2].joinpath("migration_guide", "examples", "digits_fit.ipynb")
)
TIMEOUT = 600  # seconds for a cell


def printed(notebook) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output["text"] for output in outputs if output.get("name") == "stdout")


def test_it_is_kept_without_outputs():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.slow
def test_it_fits_plots_and_goes_on_with_train(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    )
    client.execute()
    text = printed(notebook)
    [epochs] = re.findall(r"^(\d+) epochs", text, re.MULTILINE)
    fitted, trained, again = map(float, re.findall(r"test accuracy ([\d.]+)", text))
    assert f"model.ckpt-{40 * int(epochs)}\n" in text
    assert f"step {40 * int(epochs) + 100}:" in text
    assert fitted > 0.9
    assert trained > 0.9
    assert again == trained
    pictures = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 1
