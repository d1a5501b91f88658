"""The record of a chip, on JAX's CPU device: no chip is needed to know that the command works."""

import json
import pathlib
import subprocess
import sys

import pytest

from chips import record

SCRIPT = pathlib.Path(record.__file__)


@pytest.mark.full
@pytest.mark.minutes
def test_a_record(tmp_path):
    out = tmp_path / "cpu.json"
    words = ["--small", "--only=convnet", "--only=calls", "--only=killed", "--only=begun"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), f"--out={out}", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, out.read_text() + done.stderr
    written = json.loads(out.read_text())
    assert written["machine"]["device"] == "cpu"
    convnet = written["parts"].pop("convnet, batch 8")
    assert convnet["step"]["highest"]["variables"] < 1e-4
    assert convnet["steps_per_second"] > 0
    assert len(written["parts"]) == 3
    assert str(tmp_path) not in out.read_text()
    last, other = written["parts"]["killed and started again"]["losses"]
    assert last == pytest.approx(other, rel=1e-5)


def test_a_part_that_fails_is_in_the_record(tmp_path, capsys):
    def fails():
        raise record.FailedError("no kernel")

    class Runs(record.Runs):
        def parts(self):
            yield "one", lambda: {"losses": [1.0]}
            yield "other", fails

    kept = []
    found = record.record(Runs(tmp_path, None, [], 1), [], lambda parts: kept.append(dict(parts)))
    assert found == {"one": {"losses": [1.0]}, "other": {"failed": "FailedError: no kernel"}}
    assert kept == [{"one": found["one"]}, found]
    assert "other: FAILED" in capsys.readouterr().err


def test_parts_after_the_time_is_up_are_left_out(tmp_path, capsys):
    class Runs(record.Runs):
        def parts(self):
            yield "slow", lambda: self._output("sleep", "60")
            yield "next", lambda: self._output("sleep", "0")

    found = record.record(Runs(tmp_path, None, [], 1, minutes=0.005), [], lambda parts: None)
    assert found == {
        "slow": {"left_out": "The time was up: ended before it was done."},
        "next": {"left_out": "The time was up: not begun."},
    }
    assert "slow: The time was up" in capsys.readouterr().err


def test_paths_do_not_get_into_the_record(tmp_path):
    runs = record.Runs(tmp_path, None, [], 1)
    with pytest.raises(record.FailedError) as raised:
        runs._output(sys.executable, "-c", f"raise SystemExit({str(tmp_path / 'x')!r})")
    assert str(raised.value) == ".../x"
