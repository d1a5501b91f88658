"""What becomes of a compilation whose process aborts, hangs, is killed or loses its parent."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading

import psutil
import pytest
from support.processes import is_running, wait_for

from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.preflight.compiled import Error

from . import stablehlo_modules as modules

pytestmark = pytest.mark.slow  # each test waits for processes


def workers(root: psutil.Process | None = None) -> list[psutil.Process]:
    """The processes of the compiler that `root`, or this process, has started."""
    found = []
    for process in (root or psutil.Process()).children(recursive=True):
        try:
            if any("preflight.worker" in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_an_abort_is_a_crash(compile_for, cache):
    result = compile_for(modules.aborting())

    assert result.error is Error.CRASHED
    # Which of its checks fails first differs: several threads look for that device.
    assert re.fullmatch(
        r"The compiler was ended by SIGABRT\. (Check failed|ValueOrDie).* \(\w+\.cc:\d+\)",
        result.message,
    )
    assert not cache.exists()


@pytest.mark.slow
def test_a_compiler_killed_half_way(compile_for):
    killed = []

    def kill(seconds):
        if seconds > 4 and not killed:
            killed.extend(workers())
            killed[-1].kill()

    result = compile_for(modules.slow(), progress=kill)

    assert result.error is Error.CRASHED
    assert "SIGKILL" in result.message
    assert "memory" in result.message
    assert not any(is_running(process.pid) for process in killed)


@pytest.mark.slow
def test_a_compiler_that_takes_too_long_is_stopped(compile_for, cache):
    seen = []
    result = compile_for(modules.slow(), time_limit=6, progress=seen.append)

    assert result.error is Error.TIMED_OUT
    assert "did not end within 6 s" in result.message
    assert 6 <= result.seconds < 10
    assert workers() == []
    assert not cache.exists()
    assert seen[0] < 1
    assert 5 <= len(seen) <= 8
    assert seen == sorted(seen)


# Scripts in the place of the worker, for ends that the compiler cannot be brought to.
DEAF = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "1000"])
time.sleep(1000)
"""
ANSWERING = """
import pathlib, sys
(pathlib.Path(sys.argv[1]) / "answer").write_text({answer!r})
"""


@pytest.fixture
def worker_is(monkeypatch, tmp_path):
    """`worker_is(source)` runs another script in the place of the worker."""

    def replace(source):
        (tmp_path / "preflight.worker").write_text(source)
        command = [sys.executable, str(tmp_path / "preflight.worker")]
        monkeypatch.setattr(child_process, "module_command", lambda _, folder: [*command, folder])

    return replace


def test_a_process_that_hangs_is_stopped_with_its_children(compile_for, worker_is):
    worker_is(DEAF)
    groups = []
    result = compile_for(
        modules.step(1),
        time_limit=2.5,
        progress=lambda seconds: groups.extend(p.pid for p in workers()),
    )

    assert result.error is Error.TIMED_OUT
    assert groups
    alive = [p for p in psutil.process_iter() if is_running(p.pid)]
    members = [p for p in alive if os.getpgid(p.pid) in groups]
    # SIGKILL is sent to all, and waited for with the worker alone.
    assert psutil.wait_procs(members, timeout=10)[1] == []


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "garbage",
        "[]",
        "{}",
        '{"refused": "INTERNAL"}',
        '{"compiler": "TPU", "memory": {"arguments": 1}, "flops": 1, "bytes_accessed": 1}',
        '{"compiler": "TPU", "memory": 3, "flops": 1, "bytes_accessed": 1, "collectives": {}}',
    ],
)
def test_an_answer_that_cannot_be_read_is_a_crash(compile_for, worker_is, answer):
    worker_is(ANSWERING.format(answer=answer))
    result = compile_for(modules.step(1))

    assert result.error is Error.CRASHED
    assert "exit status 0 and without a readable answer" in result.message


def test_a_worker_that_fails_says_why(compile_for, worker_is):
    worker_is("import there_is_no_such_module")
    result = compile_for(modules.step(1))

    assert result.error is Error.CRASHED
    assert "exit status 1" in result.message
    assert "No module named 'there_is_no_such_module'" in result.message


def test_a_worker_that_cannot_be_started(compile_for, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    result = compile_for(modules.step(1))

    assert result.error is Error.CRASHED
    assert "could not be started" in result.message
    assert "/no/such/python" in result.message


PARENT = """
import pickle, sys
from tpu_estimator_compat.tools.preflight import compiler, targets
compiler.compile(
    pickle.load(open(sys.argv[1], "rb")), targets.parse("v5e:1x1"), 1,
    progress=lambda seconds: print(seconds > 4, flush=True))
"""


@pytest.mark.slow
def test_the_worker_dies_with_its_parent(tmp_path):
    (tmp_path / "program").write_bytes(pickle.dumps(modules.slow()))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "program")],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
    )
    with parent:
        while parent.stdout.readline() != b"True\n":
            assert parent.poll() is None
        *_, worker = workers(psutil.Process(parent.pid))
        assert list(tmp_path.glob("tpu_preflight_*"))
        parent.send_signal(signal.SIGKILL)

    wait_for(lambda: not is_running(worker.pid), seconds=10)
    wait_for(lambda: not list(tmp_path.glob("tpu_preflight_*")), seconds=10)


def test_two_at_once(compile_for):
    programs = {1: modules.step(1), 4: modules.step(4)}
    results = {}
    threads = [
        threading.Thread(
            target=lambda n=n, i=i: results.update({(n, i): compile_for(programs[n], "v5e:2x2", n)})
        )
        for n in programs
        for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [r.error for r in results.values()] == [Error.NONE] * 4
    assert results[1, 0].memory == results[1, 1].memory
    assert results[4, 0].collectives == results[4, 1].collectives == {"all-reduce": 1}
