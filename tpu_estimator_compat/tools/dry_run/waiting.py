"""Shortens the waits of a script for checkpoints that a dry run does not make."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from tpu_estimator_compat.engine.capture.patches import Function, patched
from tpu_estimator_compat.engine.graph.sources import is_users
from tpu_estimator_compat.estimator import schedule
from tpu_estimator_compat.tf_internals import checkpoint_utils
from tpu_estimator_compat.tools.dry_run.recording import Recorder

LONGEST = 0.1
"""Seconds that a sleep takes at most."""

MOST_SLEEPS = 100
"""The script ends after more sleeps in a row than this, without a call of an estimator."""

TIMEOUT = 1.0
"""Seconds that `checkpoints_iterator` waits for one more checkpoint."""

_WAITS = (checkpoint_utils.__file__, schedule._training.__file__)


@contextlib.contextmanager
def shortened(recorder: Recorder) -> Iterator[None]:
    """Within, sleeps of this thread are short, and a script that only sleeps is ended."""
    count, calls, before = 0, 0, set(threading.enumerate())

    def short(sleep: Function, seconds: float) -> None:
        nonlocal count, calls
        if _is_wait(sys._getframe(2).f_code.co_filename):
            made = len(recorder.calls)
            is_alone = made == calls and not recorder.running and not others(before)
            count, calls = count + 1 if is_alone else 0, made
            if count > MOST_SLEEPS:
                raise recorder.stop_error(
                    "The script waited for something that a dry run does not make."
                )
            seconds = min(seconds, LONGEST)
        sleep(seconds)

    with (
        patched(time, "sleep", short),
        patched(checkpoint_utils, "wait_for_new_checkpoint", _waiting, in_all_threads=True),
    ):
        yield


def _is_wait(caller: str) -> bool:
    """Whether the script sleeps itself, or TensorFlow for it."""
    return caller in _WAITS or (is_users(caller) and "site-packages" not in caller)


def others(before: set[threading.Thread]) -> list[threading.Thread]:
    """The script's threads, for which Python waits at the end."""
    return [t for t in threading.enumerate() if t not in before and not t.daemon]


def _waiting(
    wait: Function,
    checkpoint_dir: Any,
    last_checkpoint: Any = None,
    seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> Any:
    del seconds_to_sleep
    timeout = TIMEOUT if timeout is None else min(timeout, TIMEOUT)
    return wait(checkpoint_dir, last_checkpoint, LONGEST, timeout)
