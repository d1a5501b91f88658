"""`tf.contrib.cluster_resolver`: TensorFlow's own resolvers, and a local one without a TPU."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.topology import tpu_system
from tpu_estimator_compat.engine.topology.local import LocalResolver
from tpu_estimator_compat.old_names.contrib import taken_over

_resolvers = tf.distribute.cluster_resolver
_SAME = taken_over(
    globals(),
    {
        _resolvers: """
            ClusterResolver GCEClusterResolver KubernetesClusterResolver SimpleClusterResolver
            SlurmClusterResolver TFConfigClusterResolver UnionClusterResolver=UnionResolver
            UnionResolver
        """,
    },
)


class TPUClusterResolver:
    """`tf.distribute.cluster_resolver.TPUClusterResolver`, or a local resolver.

    A name or address, or a list of one, gives TensorFlow's own resolver. Without one, the resolver
    is that of the TPU that the environment names or this machine has. Without a TPU it is a
    `LocalResolver`, which `RunConfig` and `TPUStrategy` treat as no TPU. In that case,
    TensorFlow's constructor raises ValueError. The local resolver raises it in `cluster_spec()`,
    except for `tpu=""`.
    """

    def __new__(cls, tpu: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(tpu, list):
            if not tpu:
                raise ValueError("At least one TPU must be specified.")
            if len(tpu) != 1:
                raise NotImplementedError(
                    "Using multiple TPUs in a single session is not yet implemented"
                )
            tpu = tpu[0]
        if tpu:
            return _resolvers.TPUClusterResolver(tpu, *args, **kwargs)
        return tpu_system.in_environment() or LocalResolver(named=tpu is not None)


__all__ = [*_SAME, "TPUClusterResolver"]
