"""`tf.estimator.tpu.RunConfig`: the plain `RunConfig`, a `TPUConfig`, and the TPU's address."""

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config import run_config
from tpu_estimator_compat.config.arguments import check_type
from tpu_estimator_compat.config.task import TaskType
from tpu_estimator_compat.config.tpu_config import TPUConfig


class RunConfig(run_config.RunConfig):
    """`tf.estimator.tpu.RunConfig`.

    Args:
      tpu_config: a `TPUConfig`; None for the default one.
      evaluation_master: address used for evaluation; None for TF_CONFIG's, or the one of training.
      master: address of the TPU worker; None to take TF_CONFIG's or the cluster's.
      cluster: a `tf.distribute.cluster_resolver.ClusterResolver`; None or "" for none.
      **kwargs: the arguments of the plain `RunConfig`, `jit_compile` among them.

    Raises:
      TypeError: `tpu_config`, `cluster` or a master is of another type.
      ValueError: both `master` and `cluster` are given, or `cluster` and a `session_config` that
        has a `cluster_def` already; and what the plain `RunConfig` raises.

    Example:
      >>> config = RunConfig(model_dir="model", tpu_config=TPUConfig(iterations_per_loop=50))
      >>> config.tpu_config.iterations_per_loop
      50
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._tpu_config = TPUConfig() if tpu_config is None else _checked(tpu_config)
        self._cluster = cluster
        # Scripts that run without a TPU give "" for no cluster.
        if cluster and not hasattr(cluster, "cluster_spec"):
            raise TypeError(
                "cluster must be a cluster resolver, such as TPUClusterResolver(...), got"
                f" {type(cluster)}: {cluster!r}. An address is given as master=..."
            )
        for name, address in (("master", master), ("evaluation_master", evaluation_master)):
            if address is not None:
                check_type(address, name, (str, bytes), "the address of a worker (str)")
        self._set_masters(master, evaluation_master)
        if cluster not in (None, ""):
            # A resolver that found no TPU is false, and its `cluster_spec()` may raise.
            self._join_cluster(cluster.cluster_spec() if cluster else None)

    def _set_masters(self, master: str | None, evaluation_master: str | None) -> None:
        if master is not None:
            if self._cluster is not None:
                raise ValueError(
                    "Both master and cluster are set."
                    f" Got master={master!r} and cluster={self._cluster!r}; drop one of them."
                )
            self._master = master
        elif self._cluster:
            self._master = self._cluster.master()
        if evaluation_master is not None:
            self._evaluation_master = evaluation_master
        elif not self._evaluation_master and self.task_type != TaskType.EVALUATOR:
            # For an evaluator task, TF_CONFIG decides.
            self._evaluation_master = self._master

    def _join_cluster(self, cluster_spec: tf.train.ClusterSpec | None) -> None:
        self._cluster_spec = cluster_spec
        if self._session_config is None:
            self._session_config = tf.compat.v1.ConfigProto(
                allow_soft_placement=True, isolate_session_state=True
            )
        if self._session_config.HasField("cluster_def"):
            raise ValueError(
                "You cannot provide a ClusterResolver and session_config.cluster_def."
                " Drop the cluster_def: it is filled in from the resolver."
            )
        if cluster_spec:
            self._session_config.cluster_def.CopyFrom(cluster_spec.as_cluster_def())

    def _maybe_overwrite_session_config_for_distributed_training(self) -> None:
        """Does nothing: a TPU run talks to all its workers, so no device filters."""

    @property
    def tpu_config(self) -> TPUConfig:
        return self._tpu_config

    @property
    def cluster(self) -> Any:
        """The cluster resolver given, or None."""
        return self._cluster

    def replace(self, **kwargs: Any) -> "RunConfig":
        """A copy with other values, as the plain `RunConfig.replace`; also takes `tpu_config`."""
        if "tpu_config" not in kwargs:
            return super().replace(**kwargs)
        tpu_config = _checked(kwargs.pop("tpu_config"))
        new = super().replace(**kwargs)
        new._tpu_config = tpu_config
        return new


def _checked(tpu_config: Any) -> Any:
    """Returns `tpu_config`, which may be of a vendored copy of the class; else raises TypeError."""
    if isinstance(tpu_config, type) or not hasattr(tpu_config, "iterations_per_loop"):
        raise TypeError(
            f"tpu_config must be a TPUConfig, got {type(tpu_config)}: {tpu_config!r}. Give"
            " tpu_config=TPUConfig(iterations_per_loop=...), or None for defaults."
        )
    return tpu_config
