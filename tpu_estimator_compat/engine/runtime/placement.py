"""The placement of replicas: one device each, or all on one."""

from __future__ import annotations

import tensorflow as tf

from tpu_estimator_compat.tf_internals import collective_all_reduce_strategy, mirrored_strategy


def common_device(strategy: tf.distribute.Strategy) -> str | None:
    """The device that all replicas of a strategy run on; None where each has its own.

    Logical CPUs share processors, memory and threads. A function on several of them is partitioned,
    with copies between the partitions, each optimised anew. On one of them, the function that all
    replicas call is optimised once.
    """
    extended = strategy.extended
    if isinstance(extended, collective_all_reduce_strategy.CollectiveAllReduceExtended):
        return None
    if not isinstance(extended, mirrored_strategy.MirroredExtended):
        return None
    devices = [tf.DeviceSpec.from_string(device) for device in extended.worker_devices]
    if len(devices) == 1 or any(device.device_type != "CPU" for device in devices):
        return None
    if len({(device.job, device.replica, device.task) for device in devices}) > 1:
        return None
    return str(extended.worker_devices[0])
