"""The placement of replicas: one device each, or all on one; devices that do not exist."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import tensorflow as tf

from tpu_estimator_compat.tf_internals import (
    collective_all_reduce_strategy,
    context,
    distribute_lib,
    mirrored_strategy,
    pywrap_tfe,
    tf_session_api,
)


def devices(strategy: tf.distribute.Strategy) -> Sequence[str]:
    """The names of the replicas' devices; empty for TensorFlow's default strategy."""
    extended = strategy.extended
    default = isinstance(extended, distribute_lib._DefaultDistributionExtended)
    return () if default else extended.worker_devices


def common_device(strategy: tf.distribute.Strategy) -> str | None:
    """The device that all replicas of a strategy run on; None where each has its own.

    Logical CPUs share processors, memory and threads. On several of them, TensorFlow partitions a
    function, adds copies between the partitions, and optimises each partition. On one of them, it
    optimises only once the function that all replicas call.
    """
    extended = strategy.extended
    if isinstance(extended, collective_all_reduce_strategy.CollectiveAllReduceExtended):
        return None
    if not isinstance(extended, mirrored_strategy.MirroredExtended):
        return None
    there = _there()
    if not all(_is_among(there, device) for device in extended.worker_devices):
        return there[0]
    specs = [_spec(device) for device in extended.worker_devices]
    if len(specs) == 1 or any(spec.device_type != "CPU" for spec in specs):
        return None
    if len({(spec.job, spec.replica, spec.task) for spec in specs}) > 1:
        return None
    return str(extended.worker_devices[0])


def settle(assigned: Iterable[tuple[str, str]], *, soft: bool) -> None:
    """Turns on soft placement where an operation is assigned to a device that does not exist.

    A TF1 session moved the operation or failed, as its config said. TensorFlow 2's eager context
    moves it; the context that a TensorFlow 1 script starts does not.

    Args:
      assigned: names of operations, each with the device that it is explicitly assigned to, or "".
      soft: `allow_soft_placement` of the session config; if False, raises InvalidArgumentError.
    """
    there = _there()
    missing = ((name, device) for name, device in assigned if not _is_among(there, device))
    name, device = next(missing, ("", ""))
    if device and soft:
        context.context().soft_device_placement = True
    elif device:
        raise tf.errors.InvalidArgumentError(
            None,
            None,
            f"Cannot assign a device for operation {name}: {{{{node {name}}}}} was explicitly "
            f"assigned to {device} but available devices are [ {', '.join(there)} ]. Make sure the "
            "device specification refers to a valid device. Or let it run on another one: "
            "RunConfig(session_config=tf.compat.v1.ConfigProto(allow_soft_placement=True)).",
        )


def attributes() -> list[tuple[str, str, int, int]]:
    """Name, type, bytes of memory and incarnation of each device."""
    context.ensure_initialized()
    devices = pywrap_tfe.TFE_ContextListDevices(context.context()._handle)
    fields = (
        tf_session_api.TF_DeviceListName,
        tf_session_api.TF_DeviceListType,
        tf_session_api.TF_DeviceListMemoryBytes,
        tf_session_api.TF_DeviceListIncarnation,
    )
    count = tf_session_api.TF_DeviceListCount(devices)
    found = [tuple(field(devices, i) for field in fields) for i in range(count)]
    tf_session_api.TF_DeleteDeviceList(devices)
    return found


def _there() -> list[str]:
    """Full names of all devices, the host's CPU first."""
    context.ensure_initialized()
    return context.context().devices()


@functools.cache
def _spec(device: str) -> tf.DeviceSpec:
    return tf.DeviceSpec.from_string(device)


def _is_among(devices: Iterable[str], device: str) -> bool:
    return any(_spec(each).make_merged_spec(_spec(device)) == _spec(each) for each in devices)
