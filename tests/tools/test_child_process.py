import os
import sys

import pytest

from tpu_estimator_compat.tools import child_process

READS = f"""
import runpy, sys
runpy.run_path({child_process.__file__!r})["end_with_parent"]()
print(repr(sys.stdin.read()))
sys.exit(3)
"""


def test_standard_input_is_empty(tmp_path):
    process = child_process.start([sys.executable, "-c", READS], tmp_path / "log")
    assert str(child_process.wait(process)) == "ended with exit status 3"
    assert (tmp_path / "log").read_text() == "''\n"


def test_an_interruption_ends_the_process(tmp_path):
    process = child_process.start(["sleep", "600"], tmp_path / "log")

    def interrupted(seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        child_process.wait(process, progress=interrupted)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
