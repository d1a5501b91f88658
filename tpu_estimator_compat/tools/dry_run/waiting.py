"""Shortens the waits of a script for checkpoints that a dry run does not make."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from tpu_estimator_compat.engine.graph.sources import is_users
from tpu_estimator_compat.estimator import schedule
from tpu_estimator_compat.tf_internals import checkpoint_utils
from tpu_estimator_compat.tools.dry_run.recording import Recorder
from tpu_estimator_compat.tools.dry_run.replacing import Function, wrapped

LONGEST = 0.1
"""Seconds that a sleep takes at most."""

MOST_SLEEPS = 100
"""The script ends after more sleeps in a row than this, without a call of an estimator."""

TIMEOUT = 1.0
"""Seconds that `checkpoints_iterator` waits for one more checkpoint."""

_WAITS = (checkpoint_utils.__file__, schedule._training.__file__)


@contextlib.contextmanager
def shortened(recorder: Recorder) -> Iterator[None]:
    """Within, sleeps of the main thread are short, and a script that only sleeps is ended."""
    sleeps = _Sleeps(recorder)
    with contextlib.ExitStack() as stack:
        stack.enter_context(wrapped(time, "sleep", sleeps.around))
        stack.enter_context(wrapped(checkpoint_utils, "wait_for_new_checkpoint", _waiting))
        yield


class _Sleeps:
    def __init__(self, recorder: Recorder):
        self._recorder = recorder
        self._count = 0
        self._calls = 0
        self._before = set(threading.enumerate())

    def around(self, sleep: Function) -> Function:
        def function(seconds: float) -> None:
            if self._is_wait(sys._getframe(1).f_code.co_filename):
                self._count_one()
                seconds = min(seconds, LONGEST)
            sleep(seconds)

        return function

    def _is_wait(self, caller: str) -> bool:
        """Whether the script sleeps itself, or TensorFlow for it."""
        is_main = threading.current_thread() is threading.main_thread()
        is_script = is_users(caller) and "site-packages" not in caller
        return is_main and (is_script or caller in _WAITS)

    def _count_one(self) -> None:
        made = len(self._recorder.calls)
        is_alone = made == self._calls and not self._recorder.running
        self._count = self._count + 1 if is_alone and not others(self._before) else 0
        self._calls = made
        if self._count > MOST_SLEEPS:
            raise self._recorder.stop_error(
                "The script waited for something that a dry run does not make."
            )


def others(before: set[threading.Thread]) -> list[threading.Thread]:
    """The script's threads, for which Python waits at the end."""
    return [t for t in threading.enumerate() if t not in before and not t.daemon]


def _waiting(wait: Function) -> Function:
    def function(
        checkpoint_dir: Any,
        last_checkpoint: Any = None,
        seconds_to_sleep: float = 1,
        timeout: float | None = None,
    ) -> Any:
        del seconds_to_sleep
        timeout = TIMEOUT if timeout is None else min(timeout, TIMEOUT)
        return wait(checkpoint_dir, last_checkpoint, LONGEST, timeout)

    return function
