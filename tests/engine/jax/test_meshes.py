import jax
import pytest
from jax.sharding import PartitionSpec as P

from tpu_estimator_compat.engine.jax import meshes


@pytest.mark.parametrize(
    ("cores", "shape", "spec"),
    [
        (1, (512, 512), P()),
        (2, (), P()),
        (2, (8, 8), P()),
        (2, (512, 512), P(None, "core0")),
        (4, (1024, 512, 3), P(("core0", "core1"))),
        (4, (30522, 64), P(None, ("core0", "core1"))),
        (2, (30523, 127), P()),
    ],
)
def test_where_variables_are_split(cores, shape, spec):
    mesh = meshes.mesh(tuple(jax.devices()), cores)
    found = meshes.of_variable(mesh, shape)
    assert found.shard_shape(shape) == jax.sharding.NamedSharding(mesh, spec).shard_shape(shape)
    assert found.is_equivalent_to(jax.sharding.NamedSharding(mesh, spec), len(shape))


@pytest.mark.parametrize(
    ("cores", "shape", "parts", "share"),
    [
        (1, (4, 6), None, (4, 6)),
        (1, (), None, ()),
        (2, (4, 6), None, (4, 6)),
        (2, (4, 6), [1, 2], (4, 3)),
        (4, (4, 6), [2, 2], (2, 3)),
        (4, (8, 3), [4, 1], (2, 3)),
        (4, (8, 3), [2, 2], (4, 3)),
    ],
)
def test_where_input_is_split(cores, shape, parts, share):
    mesh = meshes.mesh(tuple(jax.devices()), cores)
    replicas = 8 // cores
    rows = (replicas, *shape) if not shape else (replicas * shape[0], *shape[1:])
    found = meshes.of_feed(mesh, shape, parts).shard_shape((5, *(rows if shape else [replicas])))
    assert found == (5, *(share if shape else [1]))


def test_a_number_of_devices_that_is_no_power_of_2():
    with pytest.raises(ValueError, match="power of 2; got 3"):
        meshes.mesh(tuple(jax.devices()[:6]), 3)
