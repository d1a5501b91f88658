"""`tensorflow.python.eager.profiler`: profiles that a script starts and saves itself."""

from __future__ import annotations

import datetime
import os
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.client._pywrap_events_writer import EventsWriter
from tensorflow.python.profiler.internal._pywrap_profiler import ProfilerSession
from tensorflow.python.util import deprecation

_SUFFIX = ".profile-empty"
_INSTEAD = "`tf.python.eager.profiler` has deprecated, use `tf.profiler` instead."
_lock = threading.Lock()
_running: list[Any] = []


class ProfilerAlreadyRunningError(Exception):
    """A profile is already running."""


class ProfilerNotRunningError(Exception):
    """No profile is running."""


for _error in (ProfilerAlreadyRunningError, ProfilerNotRunningError):
    _error.__module__ = "tensorflow.python.eager.profiler"  # the name in tracebacks


def _deprecated(instead: str) -> Callable[[Any], Any]:
    def of(thing: Any) -> Any:
        thing.__module__ = "tensorflow.python.eager.profiler"
        return deprecation.deprecated("2020-07-01", instead)(thing)

    return of


@_deprecated("use `tf.profiler.experimental.start` instead.")
def start(options: dict[str, Any] | None = None) -> None:
    with _lock:
        if _running:
            raise ProfilerAlreadyRunningError("Another profiler is running.")
        session = ProfilerSession()
        try:
            session.start("", options or {})
        except tf.errors.AlreadyExistsError:
            raise ProfilerAlreadyRunningError("Another profiler is running.") from None
        _running.append(session)


@_deprecated("use `tf.profiler.experimental.stop` instead.")
def stop() -> bytes:
    """Ends the profile and returns it, for `save`."""
    with _lock:
        if not _running:
            raise ProfilerNotRunningError("Cannot stop profiling. No profiler is running.")
        profile: bytes = _running.pop().stop()
        return profile


@_deprecated(_INSTEAD)
def maybe_create_event_file(logdir: str) -> None:
    """Writes an empty event file, by which TensorBoard finds profiles, if there is none."""
    if not any(name.endswith(_SUFFIX) for name in tf.io.gfile.listdir(logdir)):
        writer = EventsWriter(tf.compat.as_bytes(os.path.join(logdir, "events")))
        writer.InitWithSuffix(tf.compat.as_bytes(_SUFFIX))


@_deprecated(_INSTEAD)
def save(logdir: str, result: bytes) -> None:
    now = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    folder = os.path.join(logdir, "plugins", "profile", now)
    tf.io.gfile.makedirs(folder)
    maybe_create_event_file(logdir)
    with tf.io.gfile.GFile(os.path.join(folder, "local.trace"), "wb") as file:
        file.write(result)


@_deprecated("use `tf.profiler.experimental.server.start`.")
def start_profiler_server(port: int) -> None:
    tf.profiler.experimental.server.start(port)


@_deprecated("use `tf.profiler.experimental.Profile` instead.")
class Profiler:
    """Profiles a `with` block, and saves the profile in a folder."""

    def __init__(self, logdir: str):
        self._logdir = logdir

    def __enter__(self) -> None:
        start()

    def __exit__(self, *unused_error: object) -> None:
        save(self._logdir, stop())
