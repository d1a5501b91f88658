"""Range checks of a `RunConfig`'s properties."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.environment import RUNTIME_VARIABLE, RUNTIMES

# The original's function: it finds the same arguments of wrappers and partials.
from tpu_estimator_compat.tf_internals import function_utils


def _is_device_fn(value: Any) -> bool:
    return callable(value) and set(function_utils.fn_args(value)) == {"op"}


def _is_int(value: Any) -> bool:
    return isinstance(value, int)


def _is_config_proto(value: Any) -> bool:
    return isinstance(value, tf.compat.v1.ConfigProto)


ParameterServerStrategy = tf.compat.v1.distribute.experimental.ParameterServerStrategy

_CHECKS: list[tuple[str, Callable[[Any], bool], str]] = [
    ("model_dir", bool, "model_dir should be non-empty"),
    ("save_summary_steps", lambda n: n >= 0, "save_summary_steps should be >= 0"),
    ("save_checkpoints_steps", lambda n: n >= 0, "save_checkpoints_steps should be >= 0"),
    ("save_checkpoints_secs", lambda s: s >= 0, "save_checkpoints_secs should be >= 0"),
    ("session_config", _is_config_proto, "session_config must be instance of ConfigProto"),
    ("keep_checkpoint_max", lambda n: n >= 0, "keep_checkpoint_max should be >= 0"),
    (
        "keep_checkpoint_every_n_hours",
        lambda h: h > 0,
        "keep_checkpoint_every_n_hours should be > 0",
    ),
    ("log_step_count_steps", lambda n: n > 0, "log_step_count_steps should be > 0"),
    ("tf_random_seed", _is_int, "tf_random_seed must be integer."),
    (
        "experimental_max_worker_delay_secs",
        _is_int,
        "experimental_max_worker_delay_secs must be an integer if set.",
    ),
    (
        "session_creation_timeout_secs",
        lambda s: s > 0,
        "session_creation_timeout_secs should be > 0",
    ),
    ("device_fn", _is_device_fn, 'device_fn must be callable with exactly one argument "op".'),
    ("protocol", lambda p: p in ("grpc", "grpc+verbs"), "protocol should be grpc or grpc+verbs"),
    ("_jit_compile", lambda j: isinstance(j, bool), "jit_compile should be True, False or None"),
    (
        "runtime",
        lambda r: r in RUNTIMES,
        f"runtime, or {RUNTIME_VARIABLE}, should be one of {', '.join(RUNTIMES)}",
    ),
    ("save_input_state", lambda s: isinstance(s, bool), "save_input_state should be True or False"),
]


def check_properties(config: Any) -> None:
    """Raises ValueError, in the original's words, or TypeError for no number; None is allowed."""
    for name, is_fine, message in _CHECKS:
        value = getattr(config, name)
        if value is None:
            continue
        try:
            fine = is_fine(value)
        except TypeError as error:  # a comparison with a value that is no number
            raise TypeError(f"{message} (got {value!r}: {error})") from None
        if not fine:
            raise ValueError(f"{message} (got {value!r})")


def check_strategies(*strategies: tf.distribute.Strategy | None) -> None:
    """Raises TypeError for a non-strategy, ValueError for a `ParameterServerStrategy` of TF2.

    TF1's `ParameterServerStrategy` may have one replica per worker.
    """
    for strategy in strategies:
        if type(strategy) is tf.distribute.experimental.ParameterServerStrategy:
            raise ValueError(
                "Please use `tf.compat.v1.distribute.experimental.ParameterServerStrategy` for"
                f" parameter server strategy with estimator. Got {strategy!r}, which needs a"
                " ClusterCoordinator to hand out its steps; a model_fn has none."
                " MirroredStrategy and MultiWorkerMirroredStrategy work without one."
            )
        if isinstance(strategy, ParameterServerStrategy) and strategy.num_replicas_in_sync > 1:
            raise NotImplementedError(
                f"{strategy!r} has {strategy.num_replicas_in_sync} replicas, one per GPU of this"
                " worker, and can have one: start a worker per GPU, each with its own"
                " CUDA_VISIBLE_DEVICES."
            )
        # Strategies of TF1 and their replacements have `extended`, too.
        is_object = not isinstance(strategy, type) and hasattr(strategy, "extended")
        if strategy is not None and not is_object:
            raise TypeError(
                "train_distribute and eval_distribute must be a tf.distribute.Strategy, got"
                f" {type(strategy)}: {strategy!r}. Give an object such as"
                " tf.distribute.MirroredStrategy()."
            )
