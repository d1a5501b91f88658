"""The block of a TPU's cores that makes one replica, where several cores share it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

Shape = tuple[int, int, int]

_PREFERRED: dict[int, Shape] = {
    1: (1, 1, 1),
    2: (1, 2, 1),
    4: (2, 2, 1),
    8: (4, 2, 1),
    16: (4, 4, 1),
    32: (8, 4, 1),
    64: (8, 8, 1),
}
"""Number of chips to block (x, y, z), as the original laid out replicas on two-core chips."""


def computation_shape(cores: int, mesh_shape: Sequence[int]) -> list[int]:
    """The block of cores of one replica: chips in x, y and z, and cores per chip.

    Takes the original's block where it tiles the mesh, else the most compact block that does.
    TensorFlow counts two cores per chip on v2 and v3, one on v4 and later.
    """
    *chips_of_mesh, cores_of_chip = mesh_shape
    within_chip = min(cores, cores_of_chip)
    if cores % within_chip == 0 and cores_of_chip % within_chip == 0:
        chips = cores // within_chip
        for block in _blocks(chips):
            if all(size % side == 0 for size, side in zip(chips_of_mesh, block, strict=True)):
                return [*block, within_chip]
    raise ValueError(
        f"TPUConfig.num_cores_per_replica = {cores}: no block of {cores} cores divides this TPU, "
        f"whose mesh is {list(mesh_shape)} (chips in x, y, z; cores of a chip). Take a number of "
        f"cores that divides {math.prod(mesh_shape)}, or a larger slice."
    )


def imagined_assignment(
    replicas: int, cores: int, hosts: int = 1
) -> tf.tpu.experimental.DeviceAssignment:
    """An assignment of replicas to cores, for code that asks for one without a TPU.

    The chips form a line. Each has two cores, as legacy code expects, or one if the number of cores
    is odd. All hosts have the same number of replicas, in order; if that is no whole number, one
    host has all replicas.
    """
    of_chip = 2 if replicas * cores % 2 == 0 else 1
    chip, core = np.divmod(np.arange(replicas * cores), of_chip)
    coordinates = np.stack([chip, 0 * chip, 0 * chip, core], axis=-1)
    mesh = tf.tpu.experimental.Topology(
        mesh_shape=[replicas * cores // of_chip, 1, 1, of_chip],
        device_coordinates=coordinates.reshape(1 if replicas % hosts else hosts, -1, 4),
    )
    return tf.tpu.experimental.DeviceAssignment(mesh, coordinates.reshape(replicas, cores, 4))


def _blocks(chips: int) -> list[Shape]:
    """Blocks of this number of chips: the preferred one, then from cubes to lines."""
    sides = [side for side in range(1, chips + 1) if chips % side == 0]
    blocks: list[Shape] = [
        (x, y, z) for x, y, z in itertools.product(sides, repeat=3) if x * y * z == chips
    ]
    preferred = _PREFERRED.get(chips)
    return sorted(blocks, key=lambda block: (block != preferred, sum(block), block))
