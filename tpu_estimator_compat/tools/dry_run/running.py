"""Runs a script in a dry run, and finds the calls in its source that were not reached."""

from __future__ import annotations

import ast
import atexit
import contextlib
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Sequence

from tpu_estimator_compat.keras_model import calls
from tpu_estimator_compat.old_names.legacy.python_numpy import python2
from tpu_estimator_compat.tools import child_process, script_folders
from tpu_estimator_compat.tools.dry_run.folders import Folders, replaced_in_flags
from tpu_estimator_compat.tools.dry_run.recording import Recorder
from tpu_estimator_compat.tools.dry_run.report import Call, NotReached, Report
from tpu_estimator_compat.tools.dry_run.waiting import others, shortened


def run(
    script: str,
    arguments: Sequence[str],
    execute: Callable[[list[str]], int],
    flags: Collection[str] = script_folders.FLAGS,
    json: str | None = None,
    *,
    whole_predictions: bool = False,
) -> Report:
    """Runs a script, which `execute(arguments)` starts; returns the report.

    The limits and the folder last until the script's `atexit` functions have been called.

    Args:
      script: the path of its source; empty where there is none to read.
      flags: the script's flags that name folders to write to.
      json: a file for the report, which is written after each call, too.
    """
    kept, own = contextlib.ExitStack(), os.getpid()
    atexit.register(kept.close)
    folders = Folders(kept.enter_context(child_process.temporary_folder("dry_run_")))
    script, json = (os.path.abspath(path) if path else "" for path in (script, json))
    one_at_a_time = threading.Lock()
    status: int | None = None

    def report() -> Report:
        made = tuple(recorder.calls)
        missed = not_reached([*filter(None, [script]), *(call.file for call in made)], made)
        return Report(status, made, missed, recorder.stopped)

    def changed() -> None:
        with one_at_a_time:
            if json and os.getpid() == own:
                report().write(json)

    recorder = Recorder(folders, changed, whole_predictions=whole_predictions)
    kept.enter_context(replaced_in_flags(flags, folders.own))
    kept.enter_context(calls.observing(recorder.observe))
    kept.enter_context(shortened(recorder))
    before = set(threading.enumerate())
    status = _status(lambda: execute(script_folders.replaced(arguments, flags, folders.own)))
    if os.getpid() != own:  # a fork of the script ends here, not the script
        sys.exit(status)
    for thread in others(before):  # as Python does when a script has ended
        thread.join()
    status = status if recorder.calls or status else 1
    changed()
    return report()


def refuse_calls() -> None:
    """Refuses the calls of a child that multiprocessing did not fork: the limits are not there."""
    calls.observers.insert(0, _refused)


def _refused(call: calls.Call) -> None:
    raise RuntimeError(
        f"{call.name} is called in a process that multiprocessing started by spawn or forkserver, "
        "where a dry run cannot limit it. Call it in the script's own process, or start processes "
        "by fork."
    )


def _status(execute: Callable[[], int]) -> int:
    """The exit status that the process would have; prints `sys.exit`'s message, as Python does."""
    try:
        return execute()
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        if sys.stderr is not None:
            print(left.code, file=sys.stderr)
        return 1


_METHODS = {
    "evaluate",
    "experimental_export_all_saved_models",
    "export_saved_model",
    "export_savedmodel",
    "fit",
    "predict",
    "train",
    "train_and_evaluate",
}


def not_reached(files: Iterable[str], calls: Sequence[Call]) -> tuple[NotReached, ...]:
    """The calls in these files whose lines do not occur in `calls`."""
    reached = {(call.file, call.line) for call in calls}
    found = []
    for file in dict.fromkeys(files):
        for node, name in _calls(file):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if not any((file, line) in reached for line in lines):
                found.append(NotReached(name, file, node.lineno))
    return tuple(found)


def _calls(file: str) -> list[tuple[ast.Call, str]]:
    if not os.path.isfile(file):
        return []
    try:
        tree = python2.mended(pathlib.Path(file).read_text(encoding="utf-8")).tree
    except (SyntaxError, ValueError):  # a notebook, bytecode, or an error that the run has shown
        return []
    found = [
        (node, node.func.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _METHODS
    ]
    return sorted(found, key=lambda pair: pair[0].lineno)
