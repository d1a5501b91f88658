"""The `ConfigProto`s that the original made by default, and the fields that still have an effect.

Only exports run a TensorFlow session, yet scripts still build, pass and read a `ConfigProto`.
"""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config.task import TaskType

_HAVE_EFFECT = (
    "allow_soft_placement",
    "operation_timeout_in_ms",
    "graph_options.optimizer_options.global_jit_level",
    "trace_level",
)
_OF_DEFAULTS = (
    "cluster_def",
    "device_filters",
    "graph_options.rewrite_options.meta_optimizer_iterations",
    "isolate_session_state",
)
_OF_GPUS = ("device_count", "gpu_options")
_INSTEAD = {
    "device_count": "tf.config.set_visible_devices",
    "gpu_options.allow_growth": "tf.config.experimental.set_memory_growth",
    "gpu_options.per_process_gpu_memory_fraction": "tf.config.set_logical_device_configuration",
    "gpu_options.visible_device_list": "tf.config.set_visible_devices",
    "graph_options.rewrite_options": "tf.config.optimizer.set_experimental_options",
    "inter_op_parallelism_threads": "tf.config.threading.set_inter_op_parallelism_threads",
    "intra_op_parallelism_threads": "tf.config.threading.set_intra_op_parallelism_threads",
    "log_device_placement": "tf.debugging.set_log_device_placement",
}
_warned: set[str] = set()


def warn_of_idle_fields(options: tf.compat.v1.ConfigProto | tf.compat.v1.RunOptions) -> None:
    """Warns once of each set field that has no effect because no TensorFlow session runs.

    Without a GPU, GPU fields give no warning: they had no effect in the original either.
    """
    for name in _fields(options):
        of_gpus = _is_among(name, _OF_GPUS) and not tf.config.list_physical_devices("GPU")
        if of_gpus or name in _warned or _is_among(name, (*_HAVE_EFFECT, *_OF_DEFAULTS)):
            continue
        _warned.add(name)
        instead = next((way for field, way in _INSTEAD.items() if _is_among(name, (field,))), None)
        tf.compat.v1.logging.warning(
            "%s of a %s has no effect: steps run as tf.functions, without a session.%s",
            name,
            type(options).__name__,
            f" Call {instead} before anything else of TensorFlow." if instead else "",
        )


def _fields(message: Any, prefix: str = "") -> Iterator[str]:
    """The names of the fields that are set, such as `gpu_options.allow_growth`."""
    for field, value in message.ListFields():
        if hasattr(value, "ListFields"):
            yield from _fields(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name


def _is_among(name: str, fields: tuple[str, ...]) -> bool:
    return any(name == field or name.startswith(f"{field}.") for field in fields)


def default_session_config() -> tf.compat.v1.ConfigProto:
    """The session config of a plain `Estimator` when `session_config` is None."""
    config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    rewrite = config.graph_options.rewrite_options
    rewrite.meta_optimizer_iterations = rewrite.ONE
    return config


def distributed_session_config(task_type: str, task_id: int) -> tf.compat.v1.ConfigProto | None:
    """The session config of a task beside parameter servers; None for an evaluator."""
    filters = {
        TaskType.MASTER: ["/job:ps", "/job:master"],
        TaskType.CHIEF: ["/job:ps", "/job:chief"],
        TaskType.WORKER: ["/job:ps", f"/job:worker/task:{task_id}"],
        TaskType.PS: ["/job:ps", "/job:worker", "/job:chief", "/job:master"],
    }.get(task_type)
    if filters is None:
        return None
    config = default_session_config()
    config.device_filters.extend(filters)
    return config


def asks_for_jit(config: tf.compat.v1.ConfigProto | None) -> bool:
    """Whether `config` switches XLA on for all ops (`global_jit_level` ON_1 or ON_2)."""
    if config is None:
        return False
    options = config.graph_options.optimizer_options
    return options.global_jit_level in (options.ON_1, options.ON_2)
