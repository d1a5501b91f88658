"""`tf.estimator.RunConfig`: the configuration of a run, and the base of the TPU one."""

import copy
import operator
import os
from collections.abc import Callable
from typing import Any, Self

import tensorflow as tf

from tpu_estimator_compat import environment
from tpu_estimator_compat.config.arguments import check_path
from tpu_estimator_compat.config.run_config_checks import (
    ParameterServerStrategy,
    check_properties,
    check_strategies,
)
from tpu_estimator_compat.config.session_config import asks_for_jit, distributed_session_config
from tpu_estimator_compat.config.task import read_tf_config, task_from_tf_config

_USE_DEFAULT: Any = object()
_DEFAULT_SAVE_SECS = 600
_REPLACEABLE = [
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "device_fn",
    "protocol",
    "eval_distribute",
    "experimental_distribute",
    "experimental_max_worker_delay_secs",
    "session_creation_timeout_secs",
    "checkpoint_save_graph_def",
]
_OURS = ["jit_compile", "runtime", "save_input_state"]  # not in the original


def _stored(name: str, doc: str = "") -> Any:
    """A read-only property that returns `_<name>`; no `doc` where `RunConfig` documents it."""
    return property(operator.attrgetter(f"_{name}"), doc=doc)


class RunConfig:
    """The configuration of an `Estimator`: where it saves, how often, on which devices.

    Where the process stands in a cluster (`cluster_spec`, `task_type`, `task_id`, `is_chief`,
    `master`, `num_worker_replicas`, ...) is read from the TF_CONFIG environment variable.

    Args:
      model_dir: directory of checkpoints and summaries (str or PathLike). None leaves the choice
        to TF_CONFIG or the estimator.
      tf_random_seed: seed of the graphs' random ops; None sets none.
      save_summary_steps: steps between two summaries.
      save_checkpoints_steps: steps between two checkpoints. Not with `save_checkpoints_secs`.
      save_checkpoints_secs: seconds between two checkpoints; 600 when neither is given. If both
        are None, there are no checkpoints.
      session_config: a `tf.compat.v1.ConfigProto`, or None.
      keep_checkpoint_max: number of recent checkpoints kept; None or 0 keeps all.
      keep_checkpoint_every_n_hours: hours between two checkpoints that are kept for good.
      log_step_count_steps: steps between two reports of loss and speed.
      train_distribute: a `tf.distribute.Strategy` for training.
      device_fn: takes an op, returns its device; called in TensorFlow's sessions only, which
        `runtime="auto"` takes for it, otherwise a warning says that it has no effect.
      protocol: None, `grpc` or `grpc+verbs`.
      eval_distribute: a `tf.distribute.Strategy` for evaluation.
      experimental_distribute: an object with `train_distribute` and `eval_distribute`, another way
        to give the two.
      experimental_max_worker_delay_secs: longest delay of a worker beside parameter servers; None
        for 60. Without them, workers start at once.
      session_creation_timeout_secs: longest wait for the other workers to start, in seconds.
      checkpoint_save_graph_def: whether graph and meta graph are written beside the checkpoints.
      jit_compile: not in the original. Whether the step is compiled with XLA; None follows
        `session_config.graph_options.optimizer_options.global_jit_level`.
      runtime: not in the original. "tensorflow" and "jax" run steps; with `use_tpu=False` both take
        TensorFlow's devices, with `use_tpu=True` "jax" takes its own: TPUs, GPUs or CPUs. "session"
        runs the original's loops in TensorFlow's sessions, with `use_tpu=False` only. "auto" is
        "session" where TF_CONFIG names parameter servers, or something asks for what only sessions
        have (the guide's page differences.md lists it), "jax" where JAX has a TPU and TensorFlow
        has none, else "tensorflow". None takes the environment variable
        TPU_ESTIMATOR_COMPAT_RUNTIME, or "auto" where that is not set.
      save_input_state: not in the original. Whether the input's position is saved beside every
        checkpoint, so that training goes on from it after a restart.

    Raises:
      ValueError: a value is not allowed, both `save_checkpoints_*` are given, a strategy
        cannot work here, or TF_CONFIG contradicts itself or `model_dir`.
      TypeError: a path, a number or a strategy has another type, or a part of TF_CONFIG is no dict.

    Example:
      >>> RunConfig(model_dir="model", save_checkpoints_steps=100).save_checkpoints_steps
      100
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str] | None = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: int | None = _USE_DEFAULT,
        save_checkpoints_secs: float | None = _USE_DEFAULT,
        session_config: tf.compat.v1.ConfigProto | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: tf.distribute.Strategy | None = None,
        device_fn: Callable[..., Any] | None = None,
        protocol: str | None = None,
        eval_distribute: tf.distribute.Strategy | None = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: float | None = 7200,
        checkpoint_save_graph_def: bool = True,
        *,
        jit_compile: bool | None = None,
        runtime: str | None = None,
        save_input_state: bool = False,
    ) -> None:
        # At this point, the arguments are the only local variables.
        given = {name: value for name, value in locals().items() if name != "self"}
        steps, secs = _save_interval(save_checkpoints_steps, save_checkpoints_secs)
        check_strategies(train_distribute, eval_distribute)
        tf_config = read_tf_config()
        if tf_config:
            tf.compat.v1.logging.info("TF_CONFIG environment variable: %s", tf_config)
        given |= {
            "model_dir": _resolve_model_dir(tf_config, model_dir),
            "save_checkpoints_steps": steps,
            "save_checkpoints_secs": secs,
        }
        RunConfig._replace(self, allowed_properties_list=_REPLACEABLE, **given)
        self._take_experimental_strategies()
        self._init_distributed_setting_from_environment_var(tf_config)
        self._maybe_overwrite_session_config_for_distributed_training()

    # Existing scripts and subclasses set the underscored attributes: their names must not change.
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

    def _take_experimental_strategies(self) -> None:
        given = self._experimental_distribute
        if not given:
            return
        if not hasattr(given, "train_distribute") and not hasattr(given, "eval_distribute"):
            raise TypeError(
                "experimental_distribute must be an object with train_distribute and"
                f" eval_distribute, got {type(given)}: {given!r}. A strategy is given as"
                " train_distribute=..."
            )
        if getattr(given, "remote_cluster", None):
            raise ValueError(
                "`experimental_distribute.remote_cluster` is not supported: there is no standalone"
                " client to drive other workers. Start the script on every worker with TF_CONFIG"
                " set."
            )
        for name in ("train_distribute", "eval_distribute"):
            strategy = getattr(given, name, None)
            if strategy and getattr(self, "_" + name):
                raise ValueError(
                    f"Either `{name}` or `experimental_distribute.{name}` can be set."
                    " Drop one of the two."
                )
            if strategy:
                setattr(self, "_" + name, strategy)
        check_strategies(self._train_distribute, self._eval_distribute)

    # The two methods below keep the original's names: existing subclasses override them.
    def _init_distributed_setting_from_environment_var(self, tf_config: dict[str, Any]) -> None:
        chief_optional = bool(self._train_distribute or self._eval_distribute)
        task = task_from_tf_config(tf_config, chief_optional=chief_optional)
        for field, value in vars(task).items():
            setattr(self, "_" + field, value)

    def _maybe_overwrite_session_config_for_distributed_training(self) -> None:
        """Sets device filters, except under a strategy, where all workers must see each other."""
        trains_alone = isinstance(self._train_distribute, ParameterServerStrategy | None)
        if not self._session_config and self._cluster_spec and trains_alone:
            self._session_config = distributed_session_config(self._task_type, self._task_id)

    def replace(self, **kwargs: Any) -> Self:
        """A deep copy with other values.

        Args:
          **kwargs: constructor arguments. Setting one of `save_checkpoints_steps` and
            `save_checkpoints_secs` clears the other.

        Raises:
          ValueError: an argument cannot be replaced, or its value is refused.
        """
        config = copy.deepcopy(self)
        RunConfig._replace(config, allowed_properties_list=_REPLACEABLE, **kwargs)
        return config

    @staticmethod
    def _replace(
        config: Any, allowed_properties_list: list[str] | None = None, **kwargs: Any
    ) -> Any:
        """Sets `_<key>` on `config` itself and checks the outcome."""
        allowed = allowed_properties_list or []
        for key, value in kwargs.items():
            if key not in allowed and key not in _OURS:
                raise ValueError(
                    f"Replacing {key} is not supported. Allowed properties are {allowed}."
                    f" {_OURS} can be replaced too."
                )
            setattr(config, "_" + key, value)
        _settle_save_interval(config, kwargs)
        check_properties(config)
        return config


def _save_interval(steps: int | None, secs: float | None) -> tuple[int | None, float | None]:
    """The two `save_checkpoints_*` with their defaults; naming one switches the other off."""
    if steps is _USE_DEFAULT and secs is _USE_DEFAULT:
        return None, _DEFAULT_SAVE_SECS
    if secs is _USE_DEFAULT:
        return steps, None
    if steps is _USE_DEFAULT:
        return None, secs
    _refuse_two_intervals(steps, secs)
    return steps, secs


def _refuse_two_intervals(steps: int | None, secs: float | None) -> None:
    if steps is not None and secs is not None:
        raise ValueError(
            "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."
            f" Got {steps} and {secs}; set one of them to None."
        )


def _settle_save_interval(config: RunConfig, replaced: dict[str, Any]) -> None:
    steps, secs = config.save_checkpoints_steps, config.save_checkpoints_secs
    if "save_checkpoints_steps" in replaced and "save_checkpoints_secs" in replaced:
        _refuse_two_intervals(steps, secs)
    elif "save_checkpoints_steps" in replaced and steps is not None:
        config._save_checkpoints_secs = None
    elif "save_checkpoints_secs" in replaced and secs is not None:
        config._save_checkpoints_steps = None


def _resolve_model_dir(
    tf_config: dict[str, Any], model_dir: str | os.PathLike[str] | None
) -> str | None:
    if model_dir is not None:
        check_path(model_dir, "model_dir")
    given = None if model_dir is None else tf.compat.as_str_any(os.fspath(model_dir))
    if given == "":
        raise ValueError("model_dir should be non-empty. Pass None to leave the choice open.")
    from_cluster: str | None = tf_config.get("model_dir")
    if from_cluster == "":
        raise ValueError("model_dir in TF_CONFIG should be non-empty. Remove the key instead.")
    if from_cluster:
        if given and from_cluster != given:
            raise ValueError(
                "`model_dir` provided in RunConfig construct, if set, must have the same value as "
                f"the model_dir in TF_CONFIG. model_dir: {given}\n"
                f'TF_CONFIG["model_dir"]: {from_cluster}.\n'
            )
        tf.compat.v1.logging.info("Using model_dir in TF_CONFIG: %s", from_cluster)
    return given or from_cluster
