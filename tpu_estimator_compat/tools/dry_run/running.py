"""Runs a script in a dry run: short, redirected, recorded."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Collection, Sequence

from tpu_estimator_compat.tools import child_process, script_folders
from tpu_estimator_compat.tools.dry_run.folders import Folders
from tpu_estimator_compat.tools.dry_run.limiting import limited
from tpu_estimator_compat.tools.dry_run.recording import Recorder
from tpu_estimator_compat.tools.dry_run.redirecting import redirected
from tpu_estimator_compat.tools.dry_run.report import Report
from tpu_estimator_compat.tools.dry_run.source_calls import not_reached
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
        calls = tuple(recorder.calls)
        missed = not_reached([*filter(None, [script]), *(call.file for call in calls)], calls)
        return Report(status, calls, missed, recorder.stopped)

    def changed() -> None:
        with one_at_a_time:
            if json and os.getpid() == own:
                report().write(json)

    recorder = Recorder(folders, changed)
    kept.enter_context(redirected(folders, flags))
    kept.enter_context(limited(recorder, whole_predictions=whole_predictions))
    kept.enter_context(recorder.recorded())
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


def _status(execute: Callable[[], int]) -> int:
    """The exit status that the process would have; prints `sys.exit`'s message, as Python does."""
    try:
        return execute()
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        print(left.code, file=sys.stderr)
        return 1
