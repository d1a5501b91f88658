"""`tf.contrib.tfprof.model_analyzer`: parameters and costs of a graph, by `tf.profiler`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

Profiler = tf.profiler.Profiler
advise = tf.profiler.advise

_Options = tf.profiler.ProfileOptionBuilder

# Scripts modify these dicts before they pass them.
TRAINABLE_VARS_PARAMS_STAT_OPTIONS: dict[str, Any] = _Options.trainable_variables_parameter()
FLOAT_OPS_OPTIONS: dict[str, Any] = _Options.float_operation()
PRINT_ALL_TIMING_MEMORY: dict[str, Any] = _Options.time_and_memory()


def print_model_analysis(
    graph: tf.Graph,
    run_meta: tf.RunMetadata | None = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: dict[str, Any] | None = None,
) -> Any:
    """`tf.profiler.profile` with its old arguments and the same default options."""
    return tf.profiler.profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options or 0)
