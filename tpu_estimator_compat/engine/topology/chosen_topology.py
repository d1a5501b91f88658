"""Chooses the topology of a mode.

TensorFlow's sessions, if `runtime` asks for them or TF_CONFIG names parameter servers. With
`use_tpu=True`, JAX's devices, if `runtime` asks for them or only JAX sees a TPU. Otherwise a
strategy of TensorFlow, most explicit first:

1. `RunConfig.train_distribute`, `eval_distribute`;
2. a TPU, with `use_tpu=True`: `RunConfig(cluster=TPUClusterResolver(...))`, `master` or
   `evaluation_master`, `TPU_NAME` and similar variables, TPU cores in this machine;
3. the workers of `TF_CONFIG`, if there are several, for training;
4. this machine's GPUs, else its logical CPUs, with `use_tpu=True`;
5. one device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import ParameterServerStrategy, RunConfig
from tpu_estimator_compat.engine.cluster import joining as cluster
from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.topology import local, tpu_system
from tpu_estimator_compat.engine.topology.replicas import SessionTopology, Topology
from tpu_estimator_compat.engine.topology.tpu_strategy import TPUStrategy
from tpu_estimator_compat.environment import AUTO, JAX, SESSION, TENSORFLOW
from tpu_estimator_compat.spec import ModeKeys


def join_cluster(config: RunConfig, *, tpu_semantics: bool) -> RunConfig:
    """Joins the workers that `config` names, before TensorFlow is used; returns an updated config.

    With `use_tpu=True`, a TPU has precedence over workers.
    """
    if tpu_semantics and _may_be_for_jax(config):
        joined: RunConfig = tpu_system.of_jax("processes.joining").join(config)
        return joined
    if takes_session(config):
        if config.runtime != SESSION:
            logging.info(
                "%s: TensorFlow's sessions run the original's loops.", _why_session(config)
            )
        return config
    if config.train_distribute is not None or not cluster.is_cluster(config):
        return config
    if config.num_ps_replicas or (tpu_semantics and tpu_system.find(config, ModeKeys.TRAIN)):
        return config
    cluster.strategy(config)
    return config


def resolve(config: RunConfig, mode: str, *, tpu_semantics: bool) -> Topology:
    """The topology for `mode`, a `ModeKeys` value; `tpu_semantics` asks for TPU rules.

    Evaluation and prediction run on this machine: each process evaluates all data, without waiting
    for others. Only an `eval_distribute` over several machines, or JAX's processes, share the work.
    With `use_tpu=True` but no TPU, local replicas are used, and a log line says so.
    """
    if takes_session(config):
        _check_session(config, mode, tpu_semantics)
        return SessionTopology(tf.distribute.get_strategy(), False)
    if tpu_semantics and _is_for_jax(config, mode):
        found: Topology = tpu_system.of_jax("topology").resolve(config, mode)
        return found
    if not tpu_semantics and config._runtime == JAX:
        logging.warning(
            'RunConfig(runtime="jax") has no effect on %s, which is not asked to run on TPU. Set '
            "use_tpu=True, and for evaluation eval_on_tpu=True, for steps on JAX's devices.",
            mode,
        )
    explicit = _explicit(config, mode, tpu_semantics)
    if needs := _only_in_sessions(config, mode):
        if leaves_free(config) and not (tpu_semantics or explicit or cluster.is_cluster(config)):
            logging.info("RunConfig(%s): TensorFlow's session runs the original's loop.", needs)
            return SessionTopology(tf.distribute.get_strategy(), False)
        logging.warning("RunConfig(%s) has no effect: only TensorFlow's sessions obey it.", needs)
    if explicit is not None:
        return Topology.over(explicit, tpu_semantics)
    if tpu_semantics and (resolver := tpu_system.find(config, mode)):
        return Topology.over(tpu_system.strategy(resolver, _cores_per_replica(config)), True)
    if mode == ModeKeys.TRAIN:
        cluster.check_no_parameter_servers(config)
        if cluster.is_cluster(config):
            return Topology.over(cluster.strategy(config), tpu_semantics)
    if not tpu_semantics:
        return Topology(tf.distribute.get_strategy(), False)
    strategy = local.strategy(_of_tpu(config, "num_shards"), _cores_per_replica(config))
    topology = Topology(strategy, True, stands_in=True)
    logging.info(
        "No TPU: running %s with TPU semantics on %d local replica(s) of this machine.",
        mode,
        topology.num_replicas,
    )
    return topology


def _only_in_sessions(config: RunConfig, mode: str) -> str:
    """The field of `config` that only sessions obey; empty for none."""
    if mode == ModeKeys.TRAIN and config.device_fn is not None:
        return "device_fn=..."
    limited = config.session_config and config.session_config.operation_timeout_in_ms
    return "session_config.operation_timeout_in_ms" if limited else ""


def leaves_free(config: RunConfig) -> bool:
    """Whether nothing in `config` but strategies and clusters keeps calls out of sessions."""
    return config.runtime == AUTO and not (config.save_input_state or config.jit_compile)


def takes_session(config: RunConfig) -> bool:
    """Whether calls run in TensorFlow's sessions: `runtime` says so, or parameter servers do."""
    return config.runtime == SESSION or (config.runtime == AUTO and config.num_ps_replicas > 0)


def check_steps(config: RunConfig, refused: Mapping[str, Any]) -> None:
    """Refuses what needs steps, as name to whether it is asked for, if calls run in sessions."""
    if not takes_session(config):
        return
    for name, given in refused.items():
        if given:
            raise NotImplementedError(
                f"{_why_session(config)}: the original's loops run in TensorFlow's sessions, which "
                f"have no {name}. Drop it, or {_instead_of_session(config)}."
            )


def _check_session(config: RunConfig, mode: str, tpu_semantics: bool) -> None:
    """Refuses what sessions cannot have."""
    strategy = {ModeKeys.TRAIN: "train_distribute", ModeKeys.EVAL: "eval_distribute"}.get(mode, "")
    refused = {
        "use_tpu=True": tpu_semantics,
        strategy: _unwrapped(getattr(config, strategy)) if strategy else None,
        "jit_compile=True": config._jit_compile,
        "save_input_state=True": config.save_input_state,
    }
    check_steps(config, refused)
    if cluster.is_cluster(config) and not config.num_ps_replicas and mode == ModeKeys.TRAIN:
        raise NotImplementedError(
            f"{_why_session(config)}: nothing holds the variables that "
            f"{config.num_worker_replicas} workers share. Add the job `ps` to the cluster, or "
            f"{_instead_of_session(config)}: the workers then train together."
        )


def _why_session(config: RunConfig) -> str:
    if config.runtime == SESSION:
        return 'RunConfig(runtime="session")'
    return f"TF_CONFIG names {config.num_ps_replicas} parameter server(s)"


def _instead_of_session(config: RunConfig) -> str:
    if config.num_ps_replicas:
        return "take the job `ps` out of the cluster"
    return f'set RunConfig(runtime="{TENSORFLOW}")'


def _may_be_for_jax(config: RunConfig) -> bool:
    """Whether `_is_for_jax` may be true for training, as far as known without starting JAX."""
    if config.runtime != AUTO:
        return config.runtime == JAX
    given = config.train_distribute or config.eval_distribute
    chips = tpu_system.attached_chips() and tpu_system.of_jax("installation").is_installed()
    return bool(chips) and not given and not tpu_system.is_seen(config, ModeKeys.TRAIN)


def _is_for_jax(config: RunConfig, mode: str) -> bool:
    if config.runtime != AUTO:
        return config.runtime == JAX
    given = config.train_distribute or config.eval_distribute
    if given or tpu_system.is_seen(config, mode) or not tpu_system.of_jax("topology").has_tpu():
        return False
    logging.info(
        'runtime="auto" takes JAX for %s: TensorFlow %s sees no TPU, and JAX sees one.',
        mode,
        tf.__version__,
    )
    return True


def _explicit(config: RunConfig, mode: str, tpu_semantics: bool) -> tf.distribute.Strategy | None:
    """The strategy in the config for `mode`, if any."""
    if mode == ModeKeys.EVAL and config.eval_distribute is not None:
        return _unwrapped(config.eval_distribute)
    train = _unwrapped(config.train_distribute)
    if train is None or mode == ModeKeys.TRAIN:
        return train
    # With `use_tpu=True`, evaluation and prediction use the strategy of training.
    is_one_core = _of_tpu(config, "num_shards") == 1 and _cores_per_replica(config) is None
    if not tpu_semantics or is_one_core or workers.of(train):
        return None
    return train


def _unwrapped(strategy: Any) -> tf.distribute.Strategy | None:
    """The strategy itself; None for TF1's parameter servers, of which a worker has one replica."""
    if isinstance(strategy, ParameterServerStrategy):
        return None
    if type(strategy).__name__.startswith("CentralStorageStrategy"):
        # The steps are the same if each replica has its variables.
        return tf.distribute.MirroredStrategy(strategy.extended.worker_devices)
    return strategy.strategy if isinstance(strategy, TPUStrategy) else strategy


def _cores_per_replica(config: RunConfig) -> int | None:
    return _of_tpu(config, "num_cores_per_replica")


def _of_tpu(config: RunConfig, field: str) -> int | None:
    tpu_config = getattr(config, "tpu_config", None)
    return None if tpu_config is None else getattr(tpu_config, field)
