import os
import signal
import subprocess
import sys

import pytest
from support.processes import is_running, wait_for

from tpu_estimator_compat.tools import child_process


def run(code: str, log: os.PathLike[str]) -> child_process.Ending:
    return child_process.wait(child_process.start([sys.executable, "-c", code], log))


def test_standard_input_is_empty(tmp_path):
    ending = run("import sys; print(repr(sys.stdin.read())); sys.exit(3)", tmp_path / "log")
    assert str(ending) == "ended with exit status 3"
    assert (tmp_path / "log").read_text() == "''\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_signal_that_ended_it_is_told(number, tmp_path):
    ending = run(f"import os; os.kill(os.getpid(), {int(number)})", tmp_path / "log")
    assert str(ending) == f"was ended by {number.name}"


# A child that ignores a request to end, and has a child in a session of its own.
DEAF = """
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid, flush=True)
time.sleep(1000)
"""
PARENT = """
import sys
from tpu_estimator_compat.tools import child_process
log = sys.argv[2]
with child_process.temporary_folder("of_test_"):
    child_process.wait(child_process.start([sys.executable, "-c", sys.argv[1]], log))
"""


def test_a_process_that_takes_too_long_is_killed_with_its_children(tmp_path):
    log = tmp_path / "log"
    process = child_process.start([sys.executable, "-c", DEAF], log)
    assert child_process.wait(process, 2) == child_process.Ending(None)
    wait_for(lambda: not is_running(int(log.read_text())))


def test_none_outlives_who_has_started_it(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "temporary"
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder)}
    words = [sys.executable, "-c", PARENT, DEAF, str(log)]
    with subprocess.Popen(words, env=environment) as parent:
        wait_for(lambda: log.exists() and log.read_text())
        assert len(list(folder.iterdir())) == 1
        parent.kill()
    wait_for(lambda: not is_running(int(log.read_text())))


def test_an_interruption_ends_the_process(tmp_path):
    process = child_process.start(["sleep", "600"], tmp_path / "log")

    def interrupted(seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        child_process.wait(process, progress=interrupted)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_descriptors_and_folder_are_given(tmp_path):
    end, other = os.pipe()
    code = f"import os; os.write({other}, os.getcwd().encode())"
    process = child_process.start(
        [sys.executable, "-c", code], os.devnull, folder=tmp_path, descriptors=[other]
    )
    os.close(other)
    assert child_process.wait(process).code == 0
    with open(end, "rb") as read:
        assert read.read() == os.fsencode(tmp_path)


def test_a_module_is_run_whatever_is_in_the_working_directory(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    command = child_process.module_command("json.tool", "--help")
    process = child_process.start(command, tmp_path / "log", folder=tmp_path)
    assert child_process.wait(process).code == 0
    assert "usage" in (tmp_path / "log").read_text()


def test_a_temporary_folder_goes_at_the_end(tmp_path):
    with child_process.temporary_folder("of_test_") as folder:
        (folder / "inner").mkdir()
    assert not folder.exists()
