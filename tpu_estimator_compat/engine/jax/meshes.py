"""The mesh of replicas on JAX's devices, and the shardings of a step's values. No TensorFlow.

Where several devices share a replica, XLA's partitioner divides its step among them. The sharding
decides only how the step is computed, not its results.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

REPLICA, CORE = "replica", "core"
"""Names of a mesh's axes: `replica`, then `core0`, `core1`, ... where devices share a replica."""

SMALLEST_SPLIT = 2**14
"""Elements of the smallest variable that is split over the devices of a replica."""


@functools.cache
def mesh(devices: tuple[Any, ...], cores_per_replica: int = 1) -> Mesh:
    """A mesh of replicas, each on `cores_per_replica` (a power of 2) adjacent devices.

    The devices of a replica have an axis for every factor 2 of their number, so that an array can
    be split among them along several of its dimensions.
    """
    factors = (2,) * (cores_per_replica.bit_length() - 1)
    if math.prod(factors) != cores_per_replica:
        raise ValueError(f"cores_per_replica must be a power of 2; got {cores_per_replica}")
    names = (REPLICA, *(f"{CORE}{i}" for i in range(len(factors))))
    return Mesh(np.array(devices).reshape(-1, *factors), names)


def of_variable(mesh: Mesh, shape: Sequence[int]) -> NamedSharding:
    """The sharding of a variable.

    Every replica has its own value. Its devices split the largest dimension that their number
    divides; of equally large ones, the last. Variables of less than `SMALLEST_SPLIT` elements, and
    those without such a dimension, are whole on each device.
    """
    parts = mesh.size // mesh.shape[REPLICA]
    fitting = [i for i, size in enumerate(shape) if size and size % parts == 0]
    if parts == 1 or not fitting or math.prod(shape) < SMALLEST_SPLIT:
        return NamedSharding(mesh, P())
    split = max(fitting, key=lambda i: (shape[i], i))
    return NamedSharding(mesh, P(*[None] * split, mesh.axis_names[1:]))


def of_feed(mesh: Mesh, shape: Sequence[int], parts: Sequence[int] | None) -> NamedSharding:
    """The sharding of the elements of some steps, [steps, replicas * rows, ...].

    `shape` is of one replica's feed in a step; `parts` has the number of parts of each dimension
    over the replica's devices, None for no split. A dimension that does not divide evenly stays
    whole.
    """
    left = list(mesh.axis_names[1:])
    dimensions: list[tuple[str, ...]] = []
    for size, count in zip(shape, parts or [1] * len(shape), strict=True):
        axes = [left.pop(0) for _ in range(count.bit_length() - 1)]
        dimensions.append(tuple(axes) if size % count == 0 else ())
    first, *rest = dimensions or [()]
    return NamedSharding(mesh, P(None, (REPLICA, *first), *(axes or None for axes in rest)))
