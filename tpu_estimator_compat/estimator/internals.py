"""Private names of the original's modules that scripts and subclasses call nevertheless.

The names table lists each under its old name, such as `_write_dict_to_summary`. For names that the
package itself needs, such as the check of model_fn's arguments, the table names other modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config.arguments import all_of
from tpu_estimator_compat.engine.hooks import evaluation_events

TF_CONFIG_ENV = "TF_CONFIG"
SERVICE_KEY = "service"


def check_hooks_type(hooks: Sequence[Any] | None) -> list[Any]:
    return all_of(tf.compat.v1.train.SessionRunHook, hooks, "Hooks must be a SessionRunHook")


def check_listeners_type(saving_listeners: Sequence[Any] | None) -> list[Any]:
    wanted = tf.compat.v1.train.CheckpointSaverListener
    return all_of(
        wanted, saving_listeners, "saving_listeners must be a list of CheckpointSaverListener"
    )


def extract_metric_update_ops(
    eval_dict: dict[str, tuple[Any, Any]], distribution: Any = None
) -> tuple[tf.Operation | None, dict[str, Any]]:
    """The updates of all metrics as one op (None without metrics), and their values."""
    updates, values = [], {}
    for name, (value, update) in sorted(eval_dict.items()):
        values[name] = value
        updates.append(distribution.group(update) if distribution else update)
    return (tf.group(*updates) if updates else None), values


def dict_to_str(dictionary: dict[str, Any]) -> str:
    """Formats values as `a = 1, b = 2`, sorted by name, without bytes values."""
    return evaluation_events.shown(dictionary)


def write_dict_to_summary(
    output_dir: str, dictionary: dict[str, Any], current_global_step: int
) -> None:
    """Logs values, and writes them as one event to an event file in `output_dir`."""
    evaluation_events.write_results(output_dir, dictionary, None, current_global_step)


def estimator_export(*names: str, v1: Sequence[str] | None = None) -> Callable[[Any], Any]:
    """A decorator that does nothing: only TensorFlow's build used the API names that it set."""
    del names, v1
    return lambda thing: thing
