import math

import numpy as np
import pytest

from tpu_estimator_compat.engine.topology.computation_shapes import (
    computation_shape,
    imagined_assignment,
)

ORIGINAL = {
    1: [1, 1, 1, 1],
    2: [1, 1, 1, 2],
    4: [1, 2, 1, 2],
    8: [2, 2, 1, 2],
    16: [4, 2, 1, 2],
    32: [4, 4, 1, 2],
    64: [8, 4, 1, 2],
    128: [8, 8, 1, 2],
}
"""What the original took, which knew chips of two cores only."""


@pytest.mark.parametrize("cores", ORIGINAL)
def test_chips_of_two_cores_as_in_the_original(cores):
    assert computation_shape(cores, [16, 16, 1, 2]) == ORIGINAL[cores]


@pytest.mark.parametrize(
    ("cores", "mesh", "shape"),
    [
        (2, [2, 2, 1, 1], [1, 2, 1, 1]),  # v5e:2x2
        (4, [2, 2, 1, 1], [2, 2, 1, 1]),
        (8, [2, 4, 1, 1], [2, 4, 1, 1]),  # v6e:2x4
        (8, [2, 2, 2, 1], [2, 2, 2, 1]),  # v4:2x2x2
        (2, [1, 1, 4, 1], [1, 1, 2, 1]),
        (16, [4, 4, 4, 1], [4, 4, 1, 1]),
        (2, [3, 2, 1, 1], [1, 2, 1, 1]),
    ],
)
def test_other_meshes(cores, mesh, shape):
    assert computation_shape(cores, mesh) == shape


@pytest.mark.parametrize("mesh", [[2, 2, 1, 2], [4, 4, 1, 1], [2, 2, 4, 1], [8, 16, 1, 1]])
def test_blocks_tile_the_mesh(mesh):
    for cores in (1, 2, 4, 8, 16):
        if cores <= math.prod(mesh):
            shape = computation_shape(cores, mesh)
            assert math.prod(shape) == cores
            assert not np.any(np.array(mesh) % shape)


@pytest.mark.parametrize(
    ("cores", "mesh"), [(4, [3, 1, 1, 1]), (8, [2, 2, 1, 1]), (3, [2, 2, 1, 2])]
)
def test_no_block_fits(cores, mesh):
    with pytest.raises(ValueError, match=f"num_cores_per_replica = {cores}: no block of {cores}"):
        computation_shape(cores, mesh)


@pytest.mark.parametrize(
    ("replicas", "cores", "hosts", "mesh"),
    [
        (1, 1, 1, [1, 1, 1, 1]),
        (4, 1, 1, [2, 1, 1, 2]),
        (4, 2, 2, [4, 1, 1, 2]),
        (3, 1, 1, [3, 1, 1, 1]),
    ],
)
def test_cores_that_are_not_there_are_assigned(replicas, cores, hosts, mesh):
    """Every core once; replicas in the order of their hosts."""
    made = imagined_assignment(replicas, cores, hosts)
    assert made.topology.mesh_shape.tolist() == mesh
    assert made.core_assignment.shape == (replicas, cores, 4)
    devices = [made.tpu_device(r, core) for r in range(replicas) for core in range(cores)]
    assert len(set(devices)) == replicas * cores
    of_host = replicas // hosts
    for host in range(hosts):
        ids = list(range(host * of_host, (host + 1) * of_host))
        assert made.lookup_replicas(host, 0) == ids
        assert {made.host_device(r) for r in ids} == {f"/task:{host}/device:CPU:0"}
    assert made.core_assignment.reshape(-1, 4).tolist() == sorted(
        made.core_assignment.reshape(-1, 4).tolist()
    )
