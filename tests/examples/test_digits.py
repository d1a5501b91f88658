"""The digits example as its users run it: piped, resumed, without TPU rules, in a terminal."""

import importlib
import os
import pathlib
import pty
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow_datasets as tfds
from matplotlib import image
from sklearn import datasets

SCRIPT = pathlib.Path(__file__).parents[2].joinpath("migration_guide", "examples", "digits.py")
EXPECTED = 0.97


def command(tmp_path: pathlib.Path, *arguments: str) -> list[str]:
    directories = {"data_dir": "data", "model_dir": "model", "output_dir": "out"}
    flags = [f"--{flag}={tmp_path / name}" for flag, name in directories.items()]
    return [sys.executable, str(SCRIPT), *flags, *arguments]


def run_piped(tmp_path: pathlib.Path, *arguments: str) -> str:
    done = subprocess.run(
        command(tmp_path, *arguments), cwd=tmp_path, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return done.stdout.decode()


def run_in_terminal(tmp_path: pathlib.Path, *arguments: str) -> str:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(tmp_path, *arguments), cwd=tmp_path, stdout=theirs, stderr=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        watchdog = threading.Timer(300, process.kill)
        watchdog.start()
        received = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux: the other end was closed
                break
            if not part:
                break
            received += part
        os.close(ours)
        assert process.wait() == 0
        watchdog.cancel()
    return received.decode()


def accuracy(output: str) -> float:
    return float(re.search(r"^Test accuracy: ([\d.]+)$", output, re.MULTILINE).group(1))


def progress(output: str) -> list[tuple[int, int]]:
    found = re.findall(r"^step (\d+) of (\d+): loss \d+\.\d+$", output, re.MULTILINE)
    return [(int(step), int(last)) for step, last in found]


def check_picture(output: str, label: str) -> None:
    """The output names a PNG that shows something."""
    [path] = re.findall(rf"^{label}: (.*\.png)$", output, re.MULTILINE)
    pixels = image.imread(path)
    assert pixels.shape[0] > 300
    assert pixels.shape[1] > 600
    assert np.std(pixels) > 0.01


@pytest.mark.slow
def test_piped_then_resumed(tmp_path):
    first = run_piped(tmp_path)
    assert accuracy(first) >= EXPECTED
    assert "\r" not in first
    assert progress(first) == [(step, 1500) for step in range(25, 1501, 25)]
    assert "1437 digits to train on, 360 to test on" in first
    misread = round((1 - accuracy(first)) * 360)
    assert f"Misread: {misread} of 360 test digits" in first
    check_picture(first, "Loss curve")
    check_picture(first, "Misread digits")
    assert f"Checkpoint: {tmp_path}/model/model.ckpt-1500\n" in first
    assert (tmp_path / "model" / "model.ckpt-1500.index").exists()

    again = run_piped(tmp_path)
    assert f"Resuming from step 1500: {tmp_path}/model/model.ckpt-1500\n" in again
    assert "Already trained to step 1500" in again
    assert progress(again) == []
    assert accuracy(again) == accuracy(first)

    longer = run_piped(tmp_path, "--train_steps=1550")
    assert "Resuming from step 1500" in longer
    assert progress(longer) == [(1525, 1550), (1550, 1550)]
    assert accuracy(longer) >= EXPECTED


@pytest.mark.full
def test_without_tpu_rules(tmp_path):
    output = run_piped(tmp_path, "--use_tpu=false")
    assert accuracy(output) >= EXPECTED
    assert progress(output) == [(step, 1500) for step in range(25, 1501, 25)]


@pytest.mark.slow
def test_terminal_shows_a_bar(tmp_path):
    output = run_in_terminal(tmp_path, "--train_steps=60")
    assert progress(output.replace("\r\n", "\n")) == []
    drawn = re.findall(r"(\d+)/60\b.*?━.*?loss: \d", output)
    assert [int(step) for step in drawn] == [25, 50, 60]
    bar = output[output.index("25/60") : output.index("60/60")]
    assert "\n" not in bar  # one line, drawn over and over
    assert "Test accuracy: " in output


@pytest.fixture
def uci_digits(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return importlib.import_module("uci_digits")


def test_dataset_is_scikit_learns_in_a_fixed_stratified_split(tmp_path, uci_digits):
    builder = tfds.builder("uci_digits", data_dir=tmp_path)
    builder.download_and_prepare()
    splits = {
        name: list(tfds.as_numpy(builder.as_dataset(split=name))) for name in ("train", "test")
    }
    assert {name: len(examples) for name, examples in splits.items()} == {
        "train": 1437,
        "test": uci_digits.TEST_EXAMPLES,
    }

    def rows(examples):
        grey = np.stack([e["image"][..., 0] for e in examples])
        ink = np.rint(grey * (16 / 255)).astype(int).reshape(len(examples), -1)
        return sorted((*pixels, int(e["label"])) for pixels, e in zip(ink, examples, strict=True))

    bunch = datasets.load_digits()
    original = np.column_stack([bunch.data, bunch.target]).astype(int)
    assert rows(splits["train"] + splits["test"]) == sorted(map(tuple, original))
    whole = np.bincount(bunch.target) / len(bunch.target)
    share = np.bincount([e["label"] for e in splits["test"]]) / 360
    np.testing.assert_allclose(share, whole, atol=1 / 360)


@pytest.mark.slow
def test_to_keras_writes_the_file_beside_it(tmp_path):
    """If the text has changed for the better, replace the file in the examples."""
    words = ["-m", "tpu_estimator_compat", "to-keras", "--out", tmp_path / "digits_keras.py"]
    script = [sys.executable, *map(str, words), *command(tmp_path)[1:]]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    written = (tmp_path / "digits_keras.py").read_text()
    assert written == SCRIPT.with_name("digits_keras.py").read_text()
    assert not (tmp_path / "model").exists()
