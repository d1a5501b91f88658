"""The properties of a `RunConfig`, each read from `_<its name>`.

Scripts and subclasses in the field set the underscored attributes: they are part of the contract.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat import environment
from tpu_estimator_compat.config.session_config import asks_for_jit


class RunConfigProperties:
    """The readable properties of a `RunConfig`."""

    _model_dir: str | None
    _tf_random_seed: int | None
    _save_summary_steps: int | None
    _save_checkpoints_steps: int | None
    _save_checkpoints_secs: float | None
    _session_config: tf.compat.v1.ConfigProto | None
    _keep_checkpoint_max: int | None
    _keep_checkpoint_every_n_hours: float | None
    _log_step_count_steps: int | None
    _train_distribute: tf.distribute.Strategy | None
    _device_fn: Callable[..., Any] | None
    _protocol: str | None
    _eval_distribute: tf.distribute.Strategy | None
    _experimental_distribute: Any
    _experimental_max_worker_delay_secs: int | None
    _session_creation_timeout_secs: float | None
    _checkpoint_save_graph_def: bool
    _jit_compile: bool | None
    _runtime: str | None
    _save_input_state: bool
    _service: dict[str, Any] | None
    _cluster_spec: Any
    _task_type: str
    _task_id: int
    _master: str
    _evaluation_master: str
    _is_chief: bool
    _num_ps_replicas: int
    _num_worker_replicas: int
    _global_id_in_cluster: int | None

    @property
    def cluster_spec(self) -> tf.train.ClusterSpec:
        """The training cluster; empty when there is none, or for an evaluator."""
        return self._cluster_spec

    @property
    def device_fn(self) -> Callable[..., Any] | None:
        """Function from an op to its device, or None."""
        return self._device_fn

    @property
    def evaluation_master(self) -> str:
        """Address of the evaluation master; '' for this process."""
        return self._evaluation_master

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints and summaries."""
        return self._is_chief

    @property
    def master(self) -> str:
        """Address of the training master; '' for this process."""
        return self._master

    @property
    def num_ps_replicas(self) -> int:
        """Number of parameter servers."""
        return self._num_ps_replicas

    @property
    def num_worker_replicas(self) -> int:
        """Number of workers, the chief counted."""
        return self._num_worker_replicas

    @property
    def task_id(self) -> int:
        """Index of this process among those of the same `task_type`."""
        return self._task_id

    @property
    def global_id_in_cluster(self) -> int | None:
        """Index among all tasks: chief 0, then workers, parameter servers last; None: evaluator."""
        return self._global_id_in_cluster

    @property
    def experimental_max_worker_delay_secs(self) -> int | None:
        """Longest wait of a worker before its start, in seconds."""
        return self._experimental_max_worker_delay_secs

    @property
    def task_type(self) -> str:
        """This process's job, a `TaskType`."""
        return self._task_type

    @property
    def tf_random_seed(self) -> int | None:
        """Seed of the initializers."""
        return self._tf_random_seed

    @property
    def save_summary_steps(self) -> int | None:
        """Steps between two summaries."""
        return self._save_summary_steps

    @property
    def save_checkpoints_secs(self) -> float | None:
        """Seconds between two checkpoints, or None."""
        return self._save_checkpoints_secs

    @property
    def session_config(self) -> tf.compat.v1.ConfigProto | None:
        """The `ConfigProto`, or None."""
        return self._session_config

    @property
    def save_checkpoints_steps(self) -> int | None:
        """Steps between two checkpoints, or None."""
        return self._save_checkpoints_steps

    @property
    def checkpoint_save_graph_def(self) -> bool:
        """Whether graph and meta graph are written beside the checkpoints."""
        return self._checkpoint_save_graph_def

    @property
    def keep_checkpoint_max(self) -> int | None:
        """Number of recent checkpoints kept; None or 0 keeps all."""
        return self._keep_checkpoint_max

    @property
    def session_creation_timeout_secs(self) -> float | None:
        """Longest wait for a session, in seconds."""
        return self._session_creation_timeout_secs

    @property
    def keep_checkpoint_every_n_hours(self) -> float | None:
        """Hours between two checkpoints that are kept for good."""
        return self._keep_checkpoint_every_n_hours

    @property
    def log_step_count_steps(self) -> int | None:
        """Steps between two reports of loss and speed."""
        return self._log_step_count_steps

    @property
    def model_dir(self) -> str | None:
        """Directory of checkpoints and summaries, or None."""
        return self._model_dir

    @property
    def service(self) -> dict[str, Any] | None:
        """TF_CONFIG's `service` dict, or None."""
        return self._service

    @property
    def train_distribute(self) -> tf.distribute.Strategy | None:
        """Strategy for training, or None."""
        return self._train_distribute

    @property
    def eval_distribute(self) -> tf.distribute.Strategy | None:
        """Strategy for evaluation, or None."""
        return self._eval_distribute

    @property
    def protocol(self) -> str | None:
        """None, `grpc` or `grpc+verbs`."""
        return self._protocol

    @property
    def jit_compile(self) -> bool:
        """Whether the step is compiled with XLA (not in the original)."""
        if self._jit_compile is None:
            return asks_for_jit(self._session_config)
        return self._jit_compile

    @property
    def runtime(self) -> str:
        """The runtime of the steps with `use_tpu=True`: "tensorflow", "jax" or "auto"."""
        return self._runtime or environment.runtime()

    @property
    def save_input_state(self) -> bool:
        """Whether the input's position is saved beside every checkpoint."""
        return self._save_input_state
