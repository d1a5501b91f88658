"""Variables that live on JAX's devices; a read by the host copies them to the host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from jax.sharding import NamedSharding, PartitionSpec

from tpu_estimator_compat.engine.cluster.group import Group
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.state.variables import VariableStore, empty


class DeviceStore(VariableStore):
    """A store whose variables may be on devices.

    When a step takes a variable, its value moves to the devices, and the host's variable becomes
    empty. A read through the store copies the value back; a write by the host drops the devices'
    copy.

    Args:
      sharding: maps a variable's shape to its sharding.

    Attributes:
      ask: returns whole values, by name, of variables of which this process has only parts; None
        where this process has every variable whole.
    """

    def __init__(self, sharding: Callable[[Sequence[int]], NamedSharding]):
        super().__init__(tf.distribute.get_strategy())
        self.ask: Callable[[Sequence[str]], dict[str, np.ndarray]] | None = None
        self._sharding = sharding
        self._on_devices: dict[str, jax.Array] = {}
        self._away: set[str] = set()

    def close(self) -> None:
        super().close()
        self._on_devices.clear()
        self._away.clear()

    def take(self, names: Sequence[str]) -> list[jax.Array]:
        """The devices' values of variables, for a step that may overwrite them."""
        for name in names:
            if name not in self._away:
                self._send(name)
        return [self._on_devices[name] for name in names]

    def _send(self, name: str) -> None:
        """Moves a variable's value to the devices, and empties the host's variable."""
        variable = super().__getitem__(name)
        with eager.eager_mode():
            if name not in self._on_devices:
                if not variable.is_initialized():
                    raise tf.errors.FailedPreconditionError(
                        None, None, f"Attempting to use uninitialized value {name}"
                    )
                value = variable.read_value().numpy()
                sharding = self._sharding(value.shape)
                with jax.enable_x64(True):
                    # A copy, since a step overwrites its arguments.
                    self._on_devices[name] = jax.make_array_from_callback(
                        value.shape, sharding, lambda index: np.array(value[index])
                    )
            empty(variable)
        self._away.add(name)

    def give(self, names: Sequence[str], values: Sequence[jax.Array]) -> None:
        self._on_devices.update(zip(names, values, strict=True))

    def to_host(self, names: Iterable[str]) -> None:
        """Copies to the host the variables of `names` whose values are only on the devices."""
        asked = sorted(self._away.intersection(names))
        for name, value in self._whole(asked):
            variable = super().__getitem__(name)
            with eager.eager_mode():
                _set(variable, tf.convert_to_tensor(value))
            self._away.discard(name)

    def _whole(self, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        partial = [name for name in names if not is_here(self._on_devices[name])]
        for name in names:
            if name not in partial:
                yield name, whole(self._on_devices[name])
        if partial:
            assert self.ask is not None
            found = self.ask(partial)
            yield from ((name, found[name]) for name in partial)

    def put_together(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Whole values of variables on the devices; all processes call it, with the same names."""
        return {name: _replicated(self._on_devices[name]) for name in names}

    def peek(self, name: str) -> np.ndarray:
        """A copy of a variable's value, which stays where it is, on devices or host."""
        if name in self._away:
            [(_, value)] = self._whole([name])
            return value
        with eager.eager_mode():
            return np.asarray(super().__getitem__(name).read_value())

    def take_from_chief(self, group: Group, names: Sequence[str]) -> None:
        for name in names:
            value = group.from_chief(self.peek(name), f"first value of {name}")
            if not group.is_chief:
                self.assign(name, value)

    def host_wrote(self, names: Iterable[str]) -> None:
        """Drops the devices' values of variables: the host has newer ones."""
        for name in names:
            self._away.discard(name)
            self._on_devices.pop(name, None)

    def __getitem__(self, name: str) -> tf.Variable:
        self.to_host([name])
        return super().__getitem__(name)

    def assign(self, name: str, value: Any) -> None:
        self.host_wrote([name])
        super().assign(name, value)

    def global_step(self, graph: tf.Graph) -> tf.Variable | None:
        """The variable of a graph's global step, its value on the host; None without one."""
        step = super().global_step(graph)
        if step is not None:
            self.to_host([step.name[:-2]])
        return step

    @contextlib.contextmanager
    def host_view(self, names: Iterable[str]) -> Iterator[None]:
        names = list(names)
        self.to_host(names)
        with super().host_view(names):
            yield

    def broadcast(self, handles: Iterable[tf.Operation], *, restored: bool = False) -> None:
        self.host_wrote(op.name for op in handles)


def _set(variable: tf.Variable, value: tf.Tensor) -> None:
    """Assigns a value of any shape; an empty variable has a scalar."""
    tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)


def whole(array: jax.Array) -> np.ndarray:
    """The value of this process's first replica, assembled from its devices."""
    if array.is_fully_replicated:
        return np.asarray(array.addressable_data(0))
    value = np.empty(array.shape, array.dtype)
    for shard in _parts(array):
        value[shard.index] = shard.data
    return value


def is_here(array: jax.Array) -> bool:
    """Whether this process's devices have all parts of a variable's value."""
    if array.is_fully_replicated:
        return True
    return sum(shard.data.size for shard in _parts(array)) == array.size


def _parts(array: jax.Array) -> list[Any]:
    """The parts of a value on this process's devices, each once."""
    found = {
        tuple((part.start, part.stop) for part in shard.index): shard
        for shard in array.addressable_shards
    }
    return list(found.values())


def _replicated(array: jax.Array) -> np.ndarray:
    """The whole of a value of which each process has parts; all processes call it together."""
    everywhere = NamedSharding(array.sharding.mesh, PartitionSpec())  # type: ignore[attr-defined]
    with jax.enable_x64(True):
        found = jax.jit(lambda value: value, out_shardings=everywhere)(array)
    return np.asarray(found.addressable_data(0))
