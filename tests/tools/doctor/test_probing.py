import os
import pathlib
import statistics
import subprocess
import tempfile

import pytest

from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.doctor import probing

LIMIT = 60.0
SAY = "echo 'waits for the device' >> /proc/$PPID/fd/2"


def test_an_answer():
    outcome = probing.run(os.path.normpath, {"path": "a//b"}, LIMIT)
    assert (outcome.answer, outcome.error) == ("a/b", "")


def test_an_error():
    outcome = probing.run(statistics.mean, {"data": []}, LIMIT)
    assert outcome.answer is None
    assert outcome.error.startswith("ended with exit status 1. Its last lines: ")
    assert outcome.error.endswith("StatisticsError: mean requires at least one data point")


def test_one_that_hangs_is_ended():
    outcome = probing.run(subprocess.getoutput, {"cmd": f"{SAY}; exec sleep 600"}, 4.0)
    assert outcome.answer is None
    assert outcome.error == (
        "did not end within 4 s and was killed. Its last lines: waits for the device"
    )
    assert "--time_limit" in outcome.advice


def test_one_that_cannot_be_killed(monkeypatch):
    """As a process in a driver's call; it is the test that does not kill."""
    left = []
    monkeypatch.setattr(child_process, "end", left.append)
    outcome = probing.run(subprocess.getoutput, {"cmd": "exec sleep 600"}, 1.0)
    monkeypatch.undo()
    assert "It could not be killed" in outcome.error
    assert "Restart the machine" in outcome.advice
    for process in left:
        child_process.end(process)


def test_one_that_dies():
    outcome = probing.run(os.abort, {}, LIMIT)
    assert outcome.answer is None
    assert outcome.error.startswith("was ended by SIGABRT. ")


def test_one_that_fails_after_its_answer_has_failed(tmp_path):
    """As a runtime does that crashes when the process ends."""
    (tmp_path / "atexit_kill.py").write_text(
        "import atexit, os\n\ndef answer():\n    atexit.register(os.abort)\n    return 1\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    namespace = {"__name__": "atexit_kill"}
    exec((tmp_path / "atexit_kill.py").read_text(), namespace)
    outcome = probing.run(namespace["answer"], {}, LIMIT, {"PYTHONPATH": path})
    assert outcome.answer is None
    assert "SIGABRT after it had written its answer" in outcome.error


def test_what_it_is_given_of_the_environment(monkeypatch):
    """It leaves the user's caches alone, and its temporary files are deleted."""
    monkeypatch.setenv("TF_CONFIG", "{}")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/cache/of/the/user")
    names = ["TF_CONFIG", "JAX_COMPILATION_CACHE_DIR", "JAX_PLATFORMS", "XDG_CACHE_HOME", "TMPDIR"]
    show = " ".join(f"${{{name}-none}}" for name in names)
    variables = {"TF_CONFIG": None, "JAX_PLATFORMS": "cpu"}
    outcome = probing.run(subprocess.getoutput, {"cmd": f"echo {show}"}, LIMIT, variables)
    *known, cache, temporary = outcome.answer.split()
    assert known == ["none", "none", "cpu"]
    assert pathlib.Path(cache).parent == pathlib.Path(temporary)
    assert temporary.startswith(tempfile.gettempdir())
    assert not pathlib.Path(temporary).exists()


@pytest.mark.parametrize(
    ("log", "advice", "held"),
    [
        ("ABORTED: The TPU is already in use by process with pid 7.", "sudo lsof -w", True),
        ("accessing libtpu multi-process lockfile. Run rm", "libtpu_lockfile", True),
        ("CUDA_ERROR_OUT_OF_MEMORY: out of memory", "nvidia-smi", False),
        ("File system scheme 'gs' not implemented (file: 'gs://b')", "gcs-filesystem", False),
        ("could not join the others of", "at the same time", False),
        ("OSError: [Errno 98] Address already in use", "", False),
    ],
)
def test_known_errors(log, advice, held):
    assert advice in probing.advice_for(log)
    assert bool(advice) == bool(probing.advice_for(log))
    assert probing.is_held(probing.Outcome(log=log)) == held
