"""The `ConfigProto`s that the original made by default, and the fields that still have an effect.

Sessions are gone, yet scripts still build, pass and read a `ConfigProto`.
"""

import tensorflow as tf

from tpu_estimator_compat.config.task import TaskType


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
