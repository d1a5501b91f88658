"""Makes JAX's profiler record whenever TensorFlow's does, once a step runs on JAX's devices.

Each profiler sees only its own runtime's work; scripts, Keras' TensorBoard callback and `run
--profile` use TensorFlow's. JAX's record goes into the same folder, as the record of another host.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
import weakref
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.capture.patches import patched
from tpu_estimator_compat.engine.functions import profiles
from tpu_estimator_compat.engine.jax import installation
from tpu_estimator_compat.tf_internals import profiler_v2

_interface: Any = profiler_v2._pywrap_profiler


class _Session(_interface.ProfilerSession):
    """A session of TensorFlow's profiler, with one of JAX's profiler if `with_jax`."""

    with_jax = False

    def __init__(self) -> None:
        super().__init__()
        self._folder = ""
        self._options: dict[str, Any] = {}
        self._jax_record: tempfile.TemporaryDirectory[str] | None = None

    def start(self, folder: str, options: dict[str, Any]) -> None:
        super().start(folder, options)
        self._folder, self._options = folder, options
        if self.with_jax:
            self.start_jax()

    def start_jax(self) -> None:
        if self._jax_record is not None:
            return
        import jax

        if installation.profiler_would_crash():
            self._warn(
                "JAX has loaded libtpu on a machine without a TPU. Its profiler would end the "
                "process. Set the environment variable JAX_PLATFORMS to cpu or cuda"
            )
            return
        options = jax.profiler.ProfileOptions()
        # TensorFlow's defaults: no events for Python calls, which are very many.
        options.python_tracer_level = self._options.get("python_tracer_level", 0)
        options.host_tracer_level = self._options.get("host_tracer_level", 2)
        record = tempfile.TemporaryDirectory()
        try:
            jax.profiler.start_trace(record.name, profiler_options=options)
        except RuntimeError:
            self._warn("jax.profiler is already recording another profile")
            return
        self._jax_record = record

    def _warn(self, reason: str) -> None:
        logging.warning(
            "The profile in %s will not show the work of JAX's devices. %s.", self._folder, reason
        )

    def stop(self) -> bytes:
        """Stops both; returns TensorFlow's record, serialized."""
        self._stop_jax()
        found: bytes = super().stop()
        return found

    def export_to_tb(self) -> None:
        """Stops both, and writes both records for TensorBoard."""
        record = self._stop_jax()
        super().export_to_tb()
        if record is None:
            return
        runs = os.path.join(self._folder, "plugins", "profile")
        newest = max(name.rstrip("/") for name in tf.io.gfile.listdir(runs))  # named by their time
        with record as folder:
            for path in pathlib.Path(folder).rglob("*.xplane.pb"):
                name = path.name.replace(".xplane.pb", ".jax.xplane.pb")
                tf.io.gfile.copy(str(path), os.path.join(runs, newest, name))

    def _stop_jax(self) -> tempfile.TemporaryDirectory[str] | None:
        record, self._jax_record = self._jax_record, None
        if record is not None:
            import jax

            jax.profiler.stop_trace()
        return record

    def __del__(self) -> None:
        self._stop_jax()  # TensorFlow drops a session without stopping it


_watching: weakref.WeakSet[RunConfig] = weakref.WeakSet()


def watch(config: RunConfig) -> None:
    """Prepares TensorFlow's profiler so that `record_too` can add JAX's, even to a running session.

    Call it only where steps may run on JAX's devices: it replaces a class of TensorFlow, for as
    long as `config` exists, that is, its estimator.
    """
    if config not in _watching:
        _watching.add(config)
        replaced = contextlib.ExitStack()
        own = patched(_interface, "ProfilerSession", lambda _: _Session(), in_all_threads=True)
        replaced.enter_context(own)
        weakref.finalize(config, replaced.close)


def record_too(config: RunConfig) -> None:
    """Adds the work of JAX's devices to profiles, including one that is being recorded."""
    watch(config)
    _Session.with_jax = True
    if isinstance(profiler_v2._profiler, _Session):
        profiler_v2._profiler.start_jax()
    elif profiles.is_recording():
        logging.warning(
            "The profile that is being recorded will not show the work of JAX's devices, since it "
            "was begun before the estimator was made."
        )
