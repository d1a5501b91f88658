"""The replicas of this machine: one per GPU, else one per logical CPU."""

from __future__ import annotations

import functools

import tensorflow as tf

from tpu_estimator_compat.engine.runtime import eager


@functools.cache
def strategy(
    limit: int | None = None, cores_per_replica: int | None = None
) -> tf.distribute.Strategy:
    """A strategy over at most `limit` devices of this machine, one per replica.

    `cores_per_replica` divides the number of devices, as on a TPU; at least one replica is left.
    """
    with eager.eager_mode():
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        # In a cluster the list has the other workers' devices too, by full names.
        host = tf.constant(0).device.partition("/device:")[0]
        names = [d.name for d in devices if d.name.startswith((host, "/device:"))]
        names = names[: max(1, len(names) // (cores_per_replica or 1))][:limit]
        if len(names) == 1:
            return tf.distribute.get_strategy()
        return tf.distribute.MirroredStrategy(names)
