"""Entries of a process that has replicas of its own: to call a function, or to run one test.

The entries are `call` and `run_test`. `enter` gives each the request of `processes.run_in_fork`,
and a folder, in which it adds to the file `answers`.
"""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing
import os
import pathlib
import pickle
import signal
import sys
import threading
import traceback
from multiprocessing import connection, spawn
from typing import Any, NoReturn


def enter(
    entry: str,
    request: dict[str, Any],
    folder: str,
    cwd: str,
    environment: dict[str, str],
    parent: int,
) -> NoReturn:
    """Calls an entry in a process that a server has forked, as its last act.

    Args:
      request: what the entry needs, and the number of replicas.
      folder: the outputs are written there.
      cwd, environment: working directory, and all variables.
      parent: a file that is at its end when the parent process has ended.
    """
    os.setsid()
    threading.Thread(target=_end_with, args=[parent], daemon=True).start()
    for number, name in ((1, "stdout"), (2, "stderr")):
        with pathlib.Path(folder, name).open("wb") as file:
            os.dup2(file.fileno(), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.path[:] = request["sys_path"]
    from tpu_estimator_compat.testing import devices  # it imports TensorFlow

    devices.divide(request["replicas"])
    _ENTRIES[entry](request, pathlib.Path(folder))
    _leave()


def _leave() -> NoReturn:
    """Ends the process as Python ends: the server would leave by `os._exit`, without `atexit`."""
    if sys.version_info < (3, 13):  # 3.13 crashes in it, once TensorFlow is imported
        ctypes.pythonapi.Py_Exit(0)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def _end_with(parent: int) -> None:
    connection.wait([parent])
    os.killpg(0, signal.SIGKILL)


def _call(request: dict[str, Any], folder: pathlib.Path) -> None:
    """Calls a function, and answers with whether it returned, and what it returned or raised."""
    try:
        _prepare(request["main"])
        function, args, kwargs = pickle.loads(request["call"])
        answer = _pickled((True, function(*args, **kwargs)))
    except BaseException as error:
        answer = _pickled_error(error)
    sys.stdout.flush()
    (folder / "answers").write_bytes(answer)


def _run_test(request: dict[str, Any], folder: pathlib.Path) -> None:
    """Runs pytest with one test, and answers with its reports."""
    # Not imported above: `call` needs no pytest.
    from tpu_estimator_compat.testing.replicas import child_session

    child_session.run(request, folder)


_ENTRIES = {"call": _call, "run_test": _run_test}


def _prepare(main: dict[str, Any]) -> None:
    """Imports the main script, as a process that `multiprocessing` spawned does."""
    process: Any = multiprocessing.current_process()
    process._inheriting = True  # a script without a `__main__` guard fails with advice
    try:
        spawn.prepare(main)
    finally:
        del process._inheriting


def _pickled(answer: tuple[bool, Any]) -> bytes:
    try:
        return pickle.dumps(answer)
    except Exception as error:
        raise TypeError(
            f"with_replicas cannot give back what the function returned, a "
            f"{type(answer[1]).__name__}, since it cannot be pickled ({error}). Return numbers, "
            "strings, NumPy arrays, or lists, tuples and dicts of them."
        ) from None


def _pickled_error(error: BaseException) -> bytes:
    """The answer for an error; a RuntimeError with its message if it cannot be pickled."""
    lines = "".join(traceback.format_exception(error))
    note = f"\nIn the process that ran it:\n{lines}"
    try:
        error.add_note(note)
        content = pickle.dumps((False, error))
        pickle.loads(content)
    except Exception:
        other = RuntimeError(f"{type(error).__name__}: {error}")
        other.add_note(note)
        return pickle.dumps((False, other))
    return content
