"""`tf.contrib.layers`, cells and input functions, as TensorFlow 2.15 with tf_slim has them."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

PROBE = pathlib.Path(__file__).with_name("layers_probe.py")


def probed(python, which, folder):
    """What the probe prints; the original imports tf_slim through a link in the folder."""
    spec = importlib.util.find_spec("tf_slim")
    folder.mkdir()
    (folder / "tf_slim").symlink_to(pathlib.Path(spec.origin).parent)
    command = [python, str(PROBE), which, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-4000:]
    [line] = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    return json.loads(line.removeprefix("RESULT"))


@pytest.mark.slow
@pytest.mark.parity
def test_the_same_variables_and_numbers(original_python, tmp_path):
    original = probed(original_python, "original", tmp_path / "original")
    ours = probed(sys.executable, "ours", tmp_path / "ours")
    assert set(original) == set(ours)
    for name, expected in original.items():
        if name.startswith("batches"):
            assert ours[name] == expected, name
            continue
        assert ours[name]["variables"] == expected["variables"], name
        assert ours[name]["trainable"] == expected["trainable"], name
        assert ours[name]["updates"] == expected["updates"], name
        for a, b in zip(ours[name]["values"], expected["values"], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)
