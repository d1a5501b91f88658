"""Names of cores, and of the logical CPUs that stand for them."""

import tensorflow as tf


def split_cpu(devices: int) -> None:
    """Splits this machine's CPU, before TensorFlow starts."""
    [cpu] = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * devices
    )


def tpu_name(cpu: str) -> str | None:
    machine, found, index = cpu.partition("/device:CPU:")
    return f"{machine}/device:TPU:{int(index) - 1}" if found and int(index) else None


def cpu_name(core: str) -> str:
    """The logical CPU that stands for a core; other names as they are."""
    machine, found, index = core.partition("/device:TPU:")
    return f"{machine}/device:CPU:{int(index) + 1}" if found else core


def host_of(cpu: str) -> str:
    """The host's own CPU on the machine of a logical CPU."""
    return f"{cpu.partition('/device:')[0]}/device:CPU:0"
