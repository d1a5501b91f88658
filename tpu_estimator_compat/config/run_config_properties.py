"""The properties of a `RunConfig`, each read from `_<its name>`.

Existing scripts and subclasses set these underscored attributes, so their names must not change.
"""

import operator
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat import environment
from tpu_estimator_compat.config.session_config import asks_for_jit


def _stored(name: str, doc: str = "") -> Any:
    """A read-only property that returns `_<name>`; no `doc` where `RunConfig` documents it."""
    return property(operator.attrgetter(f"_{name}"), doc=doc)


class RunConfigProperties:
    """The readable properties of a `RunConfig`."""

    _save_checkpoints_steps: int | None
    _save_checkpoints_secs: float | None
    _session_config: tf.compat.v1.ConfigProto | None
    _train_distribute: tf.distribute.Strategy | None
    _eval_distribute: tf.distribute.Strategy | None
    _experimental_distribute: Any
    _jit_compile: bool | None
    _runtime: str | None
    _cluster_spec: Any
    _task_type: str
    _task_id: int
    _master: str
    _evaluation_master: str
    _is_chief: bool

    cluster_spec: tf.train.ClusterSpec = _stored(
        "cluster_spec", "The training cluster; empty when there is none, or for an evaluator."
    )
    device_fn: Callable[..., Any] | None = _stored("device_fn")
    evaluation_master: str = _stored(
        "evaluation_master", "Address of the evaluation master; '' for this process."
    )
    is_chief: bool = _stored("is_chief", "Whether this process writes checkpoints and summaries.")
    master: str = _stored("master", "Address of the training master; '' for this process.")
    num_ps_replicas: int = _stored("num_ps_replicas", "Number of parameter servers.")
    num_worker_replicas: int = _stored(
        "num_worker_replicas", "Number of workers, the chief counted."
    )
    task_id: int = _stored("task_id", "Index of this process among those of the same `task_type`.")
    global_id_in_cluster: int | None = _stored(
        "global_id_in_cluster",
        "Index among all tasks: chief 0, then workers, parameter servers last; None: evaluator.",
    )
    experimental_max_worker_delay_secs: int | None = _stored("experimental_max_worker_delay_secs")
    task_type: str = _stored("task_type", "This process's job, a `TaskType`.")
    tf_random_seed: int | None = _stored("tf_random_seed")
    save_summary_steps: int | None = _stored("save_summary_steps")
    save_checkpoints_secs: float | None = _stored("save_checkpoints_secs")
    session_config: tf.compat.v1.ConfigProto | None = _stored("session_config")
    save_checkpoints_steps: int | None = _stored("save_checkpoints_steps")
    checkpoint_save_graph_def: bool = _stored("checkpoint_save_graph_def")
    keep_checkpoint_max: int | None = _stored("keep_checkpoint_max")
    session_creation_timeout_secs: float | None = _stored("session_creation_timeout_secs")
    keep_checkpoint_every_n_hours: float | None = _stored("keep_checkpoint_every_n_hours")
    log_step_count_steps: int | None = _stored("log_step_count_steps")
    model_dir: str | None = _stored("model_dir")
    service: dict[str, Any] | None = _stored("service", "TF_CONFIG's `service` dict, or None.")
    train_distribute: tf.distribute.Strategy | None = _stored("train_distribute")
    eval_distribute: tf.distribute.Strategy | None = _stored("eval_distribute")
    protocol: str | None = _stored("protocol")
    save_input_state: bool = _stored("save_input_state")

    @property
    def jit_compile(self) -> bool:
        """Whether the step is compiled with XLA (not in the original)."""
        if self._jit_compile is None:
            return asks_for_jit(self._session_config)
        return self._jit_compile

    @property
    def runtime(self) -> str:
        """What runs the calls: "tensorflow", "jax", "session" or "auto"."""
        return self._runtime or environment.runtime()
