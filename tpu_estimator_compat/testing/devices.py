"""The CPU devices that stand for replicas in the process of a test."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import tensorflow as tf

from tpu_estimator_compat.config import check_positive_integer
from tpu_estimator_compat.engine.jax import installation
from tpu_estimator_compat.engine.topology import local
from tpu_estimator_compat.tf_internals import context

T = TypeVar("T")


def with_replicas(replicas: int, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Calls a function while TensorFlow and JAX have `replicas` logical CPUs, and no GPU.

    There, a `TPUEstimator` with `use_tpu=True` runs on that many replicas. Lookup tables that were
    made outside cannot be used in it, nor the other way round.

    Args:
      replicas: the number of logical CPUs.
      function: any function.
      *args, **kwargs: its arguments.

    Raises:
      TypeError, ValueError: `replicas` is not an int from 1 on.

    Example:

        def losses():
            estimator = make_estimator(use_tpu=True)
            estimator.train(input_fn, steps=2)
            return estimator.evaluate(input_fn, steps=1)["loss"]


        class LossTest(unittest.TestCase):
            def test_replicas_agree(self):
                one, four = (testing.with_replicas(n, losses) for n in (1, 4))
                self.assertAlmostEqual(one, four, places=5)
    """
    with exactly(replicas):
        return function(*args, **kwargs)


@contextlib.contextmanager
def exactly(replicas: int) -> Iterator[None]:
    """Gives TensorFlow and JAX `replicas` logical CPUs and no GPU, for the time of the block."""
    with of_replicas(replicas, at_most=replicas), _jax_of(replicas):
        yield


@contextlib.contextmanager
def of_replicas(replicas: int, at_most: float = math.inf) -> Iterator[None]:
    """Gives TensorFlow from `replicas` to `at_most` logical CPUs, for the time of the block.

    A context of TensorFlow makes its devices only once. Where this process's has others, another
    context takes its place, without GPUs, and everything else of the process stays as it is.
    Tensors, variables and functions of one context can be used in the other; lookup tables cannot.
    """
    check_count(replicas, "replicas")
    before = context.context()
    own = getattr(before, "own", before)  # blocks may be in blocks
    if own._context_handle is None:  # tests are for CPUs, and GPUs may be other processes'
        tf.config.set_visible_devices([], "GPU")
    if replicas <= _count() <= at_most:
        yield
        return
    other = _other_context(own, replicas)
    other._set_global_seed(before._seed)  # of tf.random.set_seed
    _enter(other)
    try:
        yield
    finally:
        _enter(before)


@contextlib.contextmanager
def _jax_of(replicas: int) -> Iterator[None]:
    """The same for JAX, which makes its devices anew; what it has compiled is lost."""
    if not installation.is_installed():
        yield
        return
    import jax

    given = {"jax_platforms": "cpu", "jax_num_cpu_devices": replicas}
    before = {name: getattr(jax.config, name) for name in given}
    _configure(jax, given)
    try:
        yield
    finally:
        _configure(jax, before)


def _configure(jax: Any, values: Mapping[str, Any]) -> None:
    if any(getattr(jax.config, name) != value for name, value in values.items()):
        from jax.extend import backend

        backend.clear_backends()
        for name, value in values.items():
            jax.config.update(name, value)


def _count() -> int:
    """The number of logical CPUs, even before they exist; 0 beside GPUs."""
    return 0 if tf.config.get_visible_devices("GPU") else local.count_logical_cpus()


def _enter(chosen: Any) -> None:
    chosen._thread_local_data.is_eager = context.context()._thread_local_data.is_eager
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
