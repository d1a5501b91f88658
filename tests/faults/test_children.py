"""Children of tools: whatever ends the tool, they end with it; folders go by other signals."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from support.processes import is_running, wait_for

OTHERS = [pytest.param(number, marks=pytest.mark.slow) for number in (1, 2, 15)]

TOOL = """
import os, signal, sys
from tpu_estimator_compat import __main__
from tpu_estimator_compat.tools import child_process

with __main__._ending_in_order(), child_process.temporary_folder("of_tool_") as folder:
    print(folder, flush=True)
    child = child_process.start([sys.executable, "-c", sys.argv[1], str(folder)], folder / "log")
    if "fork" in sys.argv and not (fork := os.fork()):  # it has what this process has open
        while True:
            signal.pause()
    if "fork" in sys.argv:
        print(fork, flush=True)
    child_process.wait(child)
"""

# The child, one of its own, one of a session of its own, and an orphan; all write until the end.
CHILD = """
import os, subprocess, sys, time

WRITES = '''
import os, sys, time
with open(f"{sys.argv[1]}/pid-{os.getpid()}", "w"):
    pass
while True:
    os.makedirs(sys.argv[1], exist_ok=True)
    open(f"{sys.argv[1]}/{os.getpid()}", "w").close()
'''
write = [sys.executable, "-c", WRITES, sys.argv[1]]
subprocess.Popen(write)
subprocess.Popen(write, start_new_session=True)
subprocess.run(f"setsid {sys.executable} -c '{WRITES}' {sys.argv[1]} &", shell=True)
exec(WRITES)
"""


def start(*words: str) -> tuple[subprocess.Popen[str], pathlib.Path]:
    tool = subprocess.Popen(
        [sys.executable, "-c", TOOL, CHILD, *words], stdout=subprocess.PIPE, text=True
    )
    assert tool.stdout is not None
    return tool, pathlib.Path(tool.stdout.readline().strip())


@pytest.mark.parametrize("number", [signal.SIGKILL, *OTHERS])
def test_children_and_folders_of_a_tool_end_with_it(number):
    tool, folder = start()
    wait_for(lambda: len(list(folder.glob("pid-*"))) == 4)
    pids = [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]
    os.kill(tool.pid, number)
    tool.communicate(timeout=60)
    wait_for(lambda: not any(map(is_running, pids)))
    assert folder.exists() == (number == signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_fork_of_the_tool_keeps_no_child_alive():
    tool, folder = start("fork")
    wait_for(lambda: len(list(folder.glob("pid-*"))) == 4)
    assert tool.stdout is not None
    fork = int(tool.stdout.readline())
    pids = [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]
    tool.kill()
    wait_for(lambda: not any(map(is_running, pids)))
    assert is_running(fork)
    os.kill(fork, signal.SIGKILL)
    tool.communicate()
    shutil.rmtree(folder)


def test_what_a_command_leaves_behind_ends_with_it():
    code = (
        "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
    )
    tool = (
        "import sys; from tpu_estimator_compat.tools import child_process as c; import tempfile\n"
        "log = tempfile.NamedTemporaryFile()\n"
        f"c.wait(c.start([sys.executable, '-c', {code!r}], log.name)); print(log.read().decode())"
    )
    done = subprocess.run([sys.executable, "-c", tool], capture_output=True, text=True, check=True)
    assert not is_running(int(done.stdout))
