"""The CPU devices that stand for replicas in the process of a test."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config import check_positive_integer
from tpu_estimator_compat.engine.topology import local
from tpu_estimator_compat.tf_internals import context


def divide(replicas: int) -> None:
    """Gives TensorFlow and JAX that many logical CPUs, and no GPU, to the end of the process."""
    if context.context()._context_handle is None:
        tf.config.set_visible_devices([], "GPU")
        local.split_cpu(replicas)
    elif _count() != replicas:
        _enter(_other_context(context.context(), replicas))
    os.environ["JAX_NUM_CPU_DEVICES"] = str(replicas)
    if jax := sys.modules.get("jax"):  # it has read this variable
        with contextlib.suppress(RuntimeError):  # it keeps devices that it has made
            jax.config.update("jax_platforms", "cpu")
            jax.config.update("jax_num_cpu_devices", replicas)


@contextlib.contextmanager
def of_replicas(replicas: int) -> Iterator[None]:
    """Gives TensorFlow at least `replicas` logical CPUs and no GPU, for the time of the block.

    A context of TensorFlow makes its devices only once. Where this process's has others, another
    context takes its place, and everything else of the process stays as it is. Tensors, variables
    and functions of one context can be used in the other; lookup tables cannot.
    """
    check_count(replicas, "replicas")
    own = context.context()
    if own._context_handle is None:  # tests are for CPUs, and GPUs may be other processes'
        tf.config.set_visible_devices([], "GPU")
    if _count() >= replicas:
        yield
        return
    _enter(_other_context(own, replicas))
    try:
        yield
    finally:
        _enter(own)


def _count() -> int:
    """The number of logical CPUs, even before they exist; 0 beside GPUs."""
    return 0 if tf.config.get_visible_devices("GPU") else local.count_logical_cpus()


def _enter(chosen: Any) -> None:
    context._set_context(chosen)
    local.strategy.cache_clear()  # its devices are those of the context that ended


@functools.cache
def _other_context(own: Any, replicas: int) -> Any:
    """A context that is kept, since variables of a check may live on, such as in a traceback."""
    own.ensure_initialized()
    made = _OtherContext(own.config)
    made.own = own
    made.set_visible_devices([], "GPU")
    [cpu] = made.list_physical_devices("CPU")
    parts = [tf.config.LogicalDeviceConfiguration()] * replicas
    made.set_logical_device_configuration(cpu, parts)
    return made


class _OtherContext(context.Context):
    """A context of which the process's own knows the functions.

    TensorFlow removes a function of a graph from the context of the moment when Python's collector
    finds the graph, which may be either, and fails where that does not know it.
    """

    own: Any

    def add_c_function(self, function: Any) -> None:
        super().add_c_function(function)
        self.own.add_c_function(function)

    def remove_function(self, name: str) -> None:
        if self.has_function(name):
            super().remove_function(name)
        if self.own.has_function(name):
            self.own.remove_function(name)


def check_count(value: Any, name: str) -> None:
    if isinstance(value, bool):
        raise TypeError(f"{name} must be int, got {type(value)}: {value}")
    check_positive_integer(value, name)
