"""Log lines that tools and people look for: the original's words, in the original's places."""

import pathlib
import sys

import pytest
from support import probing

PROBE = pathlib.Path(__file__).with_name("log_probe.py")


@pytest.mark.slow
@pytest.mark.parity
def test_the_same_lines_in_the_same_order(original, tmp_path):
    expected = original.run(PROBE, "original", tmp_path / "original")
    assert probing.run(sys.executable, PROBE, "ours", tmp_path / "ours") == expected
    text = "\n".join(expected["tpu"])
    assert "_TPUContext: eval_on_tpu True" in text
    assert "training_loop marked as finished" in text
    assert "loss = " not in text.partition("evaluation")[0].replace("global_step", "")
    assert "loss = 11.53, step = 0" in "\n".join(expected["plain"])
