"""JAX's devices as replicas. It needs no TensorFlow."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

REPLICA, CORE = "replica", "core"
"""Names of a mesh's axes; the second is there where several devices share a replica."""


def replicated(mesh: Mesh) -> NamedSharding:
    """How variables are placed: on every device."""
    return NamedSharding(mesh, P())


@functools.cache
def mesh(devices: tuple[Any, ...], cores_per_replica: int = 1) -> Mesh:
    """A mesh of replicas, each on as many devices that follow each other."""
    if cores_per_replica == 1:
        return Mesh(np.array(devices), (REPLICA,))
    return Mesh(np.array(devices).reshape(-1, cores_per_replica), (REPLICA, CORE))
