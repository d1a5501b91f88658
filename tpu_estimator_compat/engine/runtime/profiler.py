"""The state of TensorFlow's profiler, which the choice of an executor depends on."""

from __future__ import annotations

from tpu_estimator_compat.tf_internals import profiler_v2


def is_recording() -> bool:
    return profiler_v2._profiler is not None
