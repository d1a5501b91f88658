"""Runs steps on the devices of a mesh, many in one dispatch. No TensorFlow.

Each device along the axis `replica` runs the step of one replica, and has its own values of all
variables, as on the cores of a TPU: values that a step does not exchange may differ.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tpu_estimator_compat.engine.jax import meshes
from tpu_estimator_compat.engine.jax.lowering.step_module import RANDOM_STATE, StepModule
from tpu_estimator_compat.engine.jax.meshes import REPLICA
from tpu_estimator_compat.engine.jax.module import ParsedModule
from tpu_estimator_compat.engine.signals.activity import Activity

_KERAS_SEED = "seed_generator_state"
"""The suffix of the states of Keras 3's seed generators: uint32, a seed and a counter."""

# Odd, and far apart: 2**32 / the golden ratio, and a factor of MurmurHash3.
_BY_REPLICA, _BY_STEP = 0x9E3779B9, 0x85EBCA6B


@dataclasses.dataclass(frozen=True)
class Placed:
    """The arguments of a dispatch besides variables, on their way to the devices.

    `feeds` has per feed an array [most, replicas * batch, ...]; `numbers` is int64 [steps to make,
    key, position]. Random numbers are drawn from the key, which has 63 bits and is the same for all
    steps, and the position, the number of the dispatch's first step in the training.
    """

    feeds: list[jax.Array]
    numbers: jax.Array


@dataclasses.dataclass
class Dispatched:
    """The results of a dispatch, which devices may still compute.

    `steps` is the number of steps made, an int32 scalar. `fetches` has per fetch an array [most,
    rows, ...]: scalars of the replicas side by side, other values concatenated over the replicas.
    """

    variables: list[jax.Array]
    steps: jax.Array
    fetches: list[jax.Array]


class StepFunction:
    """Runs a step on all devices of a mesh.

    Args:
      mesh: of the replicas. Where several devices share a replica, XLA's partitioner divides the
        step.
      most: the largest number of steps of a dispatch. 1 compiles no loop: XLA's CPU backend runs
        convolutions within loops on a slow path.
      loss, partition: as in `Dispatch`.
      gathers: whether every device gets the fetches of all replicas, as several processes need:
        each sees only its own devices.
      returned: indices of feeds that a step returns after its fetches.
      first_replica: the index of the first replica whose input this process has.

    Attributes:
      names: of the variables, in the order of the arguments.
      function: the function that `jax.jit` made.
    """

    def __init__(
        self,
        step: StepModule,
        mesh: Mesh,
        most: int,
        loss: int | None = None,
        partition: Sequence[Sequence[int] | None] | None = None,
        *,
        gathers: bool = False,
        returned: Sequence[int] = (),
        first_replica: int = 0,
    ):
        self.mesh, self.most = mesh, most
        self._first_replica = first_replica
        positions = np.arange(mesh.size).reshape(mesh.shape[REPLICA], -1)
        self._module = ParsedModule(step, positions)
        self._loss = loss
        self.names = step.stored
        self._all_names = list(step.variables)
        self._replicated = whole = NamedSharding(mesh, P())
        placed = [meshes.of_variable(mesh, step.variables[name].shape) for name in self.names]
        feeds = [
            meshes.of_feed(mesh, array.shape, parts)
            for array, parts in zip(step.feeds, partition or [None] * len(step.feeds), strict=True)
        ]
        self._feeds, self._returned = feeds, list(returned)
        given = [jax.core.ShapedArray(a.shape, a.dtype) for a in step.feeds]
        self._fetched = [*self._module.fetched, *(given[i] for i in self._returned)]
        self._gathers = gathers
        self._compiling: contextlib.AbstractContextManager[Any] = Activity("Compiling the step")
        self._of_fetches = [P() if self._gathers else P(None, REPLICA)] * len(self._fetched)
        fetches = [NamedSharding(mesh, spec) for spec in self._of_fetches]
        self.function = jax.jit(
            self._mapped(),
            in_shardings=(placed, feeds, whole),
            out_shardings=(placed, whole, fetches),
            donate_argnums=0,
        )

    def place(self, feeds: Sequence[np.ndarray], steps: int, key: int, position: int) -> Placed:
        """Sends the arguments of a dispatch to the devices; does not wait.

        `feeds` has per feed an array [most, replicas * batch, ...] of this process's replicas.
        """
        numbers = np.asarray([steps, key, position], np.int64)
        with jax.enable_x64(True):
            if jax.process_count() == 1:
                *placed, numbers = jax.device_put(
                    [*feeds, numbers], [*self._feeds, self._replicated]
                )
                return Placed(placed, numbers)
            _, shapes, _ = self.shapes()
            placed = list(map(self._given, self._feeds, shapes, feeds))
            sent = jax.make_array_from_callback((3,), self._replicated, numbers.__getitem__)
            return Placed(placed, sent)

    def _given(self, sharding: NamedSharding, whole: Any, array: np.ndarray) -> jax.Array:
        """Assembles a global array from this process's slice of the feed."""
        before = whole.shape[1] // self.mesh.shape[REPLICA] * self._first_replica

        def part(index: Any) -> np.ndarray:
            steps, rows, *rest = index
            first, last = rows.start or 0, whole.shape[1] if rows.stop is None else rows.stop
            return array[(steps, slice(first - before, last - before), *rest)]

        return jax.make_array_from_callback(whole.shape, sharding, part)

    def __call__(self, variables: Sequence[jax.Array], placed: Placed) -> Dispatched:
        """Starts the steps of `placed`; `variables`, in the order of `names`, are donated."""
        with self._compiling, jax.enable_x64(True):
            self._compiling = contextlib.nullcontext()  # from the second call on
            return Dispatched(*self.function(list(variables), placed.feeds, placed.numbers))

    def lower(self) -> Any:
        """Lowers the function to `jax.stages.Lowered`; needs neither values nor real devices."""
        with jax.enable_x64(True):
            return self.function.lower(*self.shapes())

    def shapes(self) -> tuple[Any, Any, Any]:
        """Shapes and dtypes of the arguments of `function`: variables, feeds, and numbers."""
        step, replicas = self._module.step, self.mesh.shape[REPLICA]
        feeds = []
        for array in step.feeds:
            rows, *others = array.shape or (1,)
            shape = (self.most, replicas * rows, *others)
            feeds.append(jax.ShapeDtypeStruct(shape, array.dtype))
        given = [step.variables[name] for name in self.names]
        variables = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in given]
        return variables, feeds, jax.ShapeDtypeStruct((3,), np.int64)

    def _mapped(self) -> Any:
        return jax.shard_map(
            self._on_replica,
            mesh=self.mesh,
            in_specs=(
                [P()] * len(self.names),
                [P(None, REPLICA)] * len(self._module.step.feeds),
                P(),
            ),
            out_specs=([P()] * len(self.names), P(), self._of_fetches),
            axis_names={REPLICA},
            check_vma=False,
        )

    def _on_replica(self, variables: list[Any], feeds: list[Any], numbers: Any) -> Any:
        steps, key, position = numbers
        if self.most == 1:
            after, fetched = self._step(variables, self._element(feeds, 0), key, position)
            return after, jnp.int32(1), self._whole([f[None] for f in fetched])
        kept = [jnp.zeros((self.most, *a.shape), a.dtype) for a in self._fetched]

        def goes_on(state: Any) -> Any:
            i, stopped, _, _ = state
            return (i < steps) & ~stopped

        def body(state: Any) -> Any:
            i, stopped, variables, kept = state
            feed = self._element(feeds, i)
            variables, fetched = self._step(variables, feed, key, position + i)
            kept = [
                jax.lax.dynamic_update_index_in_dim(k, f, i, 0)
                for k, f in zip(kept, fetched, strict=True)
            ]
            if self._loss is not None:
                stopped = jnp.isnan(fetched[self._loss]).any()  # the same on all replicas
            return i + 1, stopped, variables, kept

        start = (jnp.int32(0), jnp.bool_(False), variables, kept)
        made, _, after, kept = jax.lax.while_loop(goes_on, body, start)
        return after, made, self._whole(kept)

    def _whole(self, fetched: list[Any]) -> list[Any]:
        """Fetches of one replica (`gathers`: of all): [steps, rows, ...]; a scalar is a row."""
        fetched = [f if f.ndim > 1 else f[:, None] for f in fetched]
        if not self._gathers:
            return fetched
        return [jax.lax.all_gather(f, REPLICA, axis=1, tiled=True) for f in fetched]

    def _element(self, feeds: list[Any], i: Any) -> list[Any]:
        """The input of a replica in step `i`; in feeds, a scalar is one row per replica."""
        return [
            jax.lax.dynamic_index_in_dim(f, i, keepdims=False).reshape(described.shape)
            for f, described in zip(feeds, self._module.step.feeds, strict=True)
        ]

    def _step(self, variables: list[Any], feeds: list[Any], key: Any, position: Any) -> Any:
        given = dict(zip(self.names, variables, strict=True))
        replica = jax.lax.axis_index(REPLICA)
        arguments = []
        for name in self._all_names:
            if name == RANDOM_STATE:
                own = key + replica.astype(np.int64) * _BY_REPLICA
                arguments.append(jnp.stack([jnp.zeros_like(key), position, own]))
            elif name.endswith(_KERAS_SEED):
                shift = replica * np.uint32(_BY_REPLICA) + position * np.uint32(_BY_STEP)
                arguments.append(given[name].at[0].add(shift.astype(given[name].dtype)))
            else:
                arguments.append(given[name])
        fetched, after = self._module(feeds, arguments)
        fetched = [*fetched, *(feeds[i] for i in self._returned)]
        found = dict(zip(self._all_names, after, strict=True))
        # The seed is shifted for this step only: keep the unshifted seed.
        kept = [given[n] if n.endswith(_KERAS_SEED) else found[n] for n in self.names]
        return kept, fetched
