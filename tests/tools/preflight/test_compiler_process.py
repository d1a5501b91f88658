"""What becomes of a compilation whose process aborts, hangs, is killed or answers nonsense."""

import re
import sys
import threading

import pytest

from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.preflight.compiled import Error

from . import stablehlo_modules as modules

pytestmark = pytest.mark.slow  # each test waits for processes


def test_an_abort_is_a_crash(compile_for, cache):
    result = compile_for(modules.aborting())
    assert result.error is Error.CRASHED
    # Which of its checks fails first differs: several threads look for that device.
    assert re.fullmatch(
        r"The compiler was ended by SIGABRT\. (Check failed|ValueOrDie).* \(\w+\.cc:\d+\)",
        result.message,
    )
    assert not cache.exists()


@pytest.fixture
def worker_is(monkeypatch):
    """`worker_is(source)` runs another script in the place of the worker."""

    def replace(source):
        command = [sys.executable, "-c", source]
        monkeypatch.setattr(child_process, "module_command", lambda _, folder: [*command, folder])

    return replace


def test_a_compiler_that_takes_too_long_is_stopped(compile_for, worker_is, cache):
    worker_is("import time; time.sleep(1000)")
    seen = []
    result = compile_for(modules.step(1), time_limit=3.5, progress=seen.append)
    assert result.error is Error.TIMED_OUT
    assert "did not end within 3.5 s" in result.message
    assert 3.5 <= result.seconds < 7
    assert not cache.exists()
    assert seen[0] < 1
    assert 3 <= len(seen) <= 5
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL. The machine may have run"),
        ("import there_is_no_such_module", "exit status 1 and without a readable answer. Last"),
        ("import there_is_no_such_module", "No module named 'there_is_no_such_module'"),
    ],
)
def test_a_worker_that_fails_says_why(compile_for, worker_is, source, said):
    worker_is(source)
    result = compile_for(modules.step(1))
    assert result.error is Error.CRASHED
    assert said in result.message


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "garbage",
        "[]",
        '{"refused": "INTERNAL"}',
        '{"compiler": "TPU", "memory": {"arguments": 1}, "flops": 1, "bytes_accessed": 1}',
        '{"compiler": "TPU", "memory": 3, "flops": 1, "bytes_accessed": 1, "collectives": {}}',
    ],
)
def test_an_answer_that_cannot_be_read_is_a_crash(compile_for, worker_is, answer):
    worker_is(f"import pathlib, sys; (pathlib.Path(sys.argv[1]) / 'answer').write_text({answer!r})")
    result = compile_for(modules.step(1))
    assert result.error is Error.CRASHED
    assert "exit status 0 and without a readable answer" in result.message


def test_a_worker_that_cannot_be_started(compile_for, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    result = compile_for(modules.step(1))
    assert result.error is Error.CRASHED
    assert "could not be started" in result.message
    assert "/no/such/python" in result.message


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
