"""The CPU devices that stand for replicas in the process of a test."""

from __future__ import annotations

import os
import sys
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config import check_positive_integer
from tpu_estimator_compat.engine.topology import local
from tpu_estimator_compat.tf_internals import context


def divide(replicas: int) -> None:
    """Gives TensorFlow and JAX that many logical CPUs, no GPU; RuntimeError once others exist."""
    try:
        tf.config.set_visible_devices([], "GPU")
        local.split_cpu(replicas)
    except RuntimeError:  # "cannot be modified after being initialized"
        made = len(tf.config.list_logical_devices("CPU"))
        if made != replicas or tf.config.list_logical_devices("GPU"):
            raise RuntimeError(
                f"TensorFlow has made its devices already, {made} logical CPUs; asked "
                f"for: {replicas}, and no GPU"
            ) from None
    os.environ["JAX_NUM_CPU_DEVICES"] = str(replicas)
    if jax := sys.modules.get("jax"):  # it has read this variable
        for name, value in (("jax_platforms", "cpu"), ("jax_num_cpu_devices", replicas)):
            if getattr(jax.config, name) != value:
                jax.config.update(name, value)


def require(replicas: int) -> None:
    """Ensures `replicas` logical CPUs; hides GPUs unless TensorFlow has made its devices.

    Raises RuntimeError where TensorFlow, which makes its devices only once, has made fewer.
    """
    check_count(replicas, "replicas")
    are_made = context.context()._context_handle is not None
    if not are_made:
        [cpu] = tf.config.list_physical_devices("CPU")
        asked = len(tf.config.get_logical_device_configuration(cpu) or [None])
        if asked < replicas:
            local.split_cpu(replicas)
        tf.config.set_visible_devices([], "GPU")
    there = len(tf.config.list_logical_devices("CPU"))
    if there < replicas:
        raise RuntimeError(
            f"replicas={replicas}, but TensorFlow has made its devices in this process, and they "
            f"are {there} logical CPU(s). It makes them once. Give the test a process of its own "
            f"with @pytest.mark.replicas({replicas}), or call the function by "
            f"testing.with_replicas({replicas}, function)."
        )


def check_count(value: Any, name: str) -> None:
    if isinstance(value, bool):
        raise TypeError(f"{name} must be int, got {type(value)}: {value}")
    check_positive_integer(value, name)
