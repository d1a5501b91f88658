import fnmatch
import pathlib
import re

import numpy as np
import psutil
import pytest
import tensorflow as tf
from support.installations import installation
from support.jax_estimators import RUNTIMES, on, variables
from support.legacy_models import train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.jax.lowering import module_cache, replacements, xla_collectives
from tpu_estimator_compat.engine.jax.lowering.findings import advice
from tpu_estimator_compat.engine.jax.lowering.replica_step import replica_step
from tpu_estimator_compat.engine.jax.lowering.scan import supported_ops
from tpu_estimator_compat.engine.jax.lowering.stablehlo import Untouched
from tpu_estimator_compat.engine.step import collectives
from tpu_estimator_compat.engine.step.plan import StepPlan

HERE = pathlib.Path(__file__)
LIST = HERE.with_name("ops_of_tensorflow_tpu.txt")
"""The operations for which tensorflow-tpu 2.20.0 has kernels of a TPU's XLA."""

GUIDE = HERE.parents[4] / "migration_guide" / "jax.md"

REGISTERED = """
import tensorflow as tf
from tensorflow.python.framework import kernels
try:
    tf.function(lambda x: x, jit_compile=True)(1.0)  # registers them, and needs a TPU
except tf.errors.NotFoundError:
    pass
found = kernels.get_all_registered_kernels().kernel
print("ops:", *sorted({k.op for k in found if k.device_type == "XLA_TPU_JIT"}))
"""


def refused() -> list[str]:
    lowered = {*supported_ops(), *collectives.OP_TYPES, *replacements.OP_TYPES}
    return sorted({*LIST.read_text().split(), *xla_collectives.TPU_ONLY} - lowered)


def test_every_refused_operation_has_advice():
    assert [op for op in refused() if advice(op) is None] == []


def test_the_guide_names_every_refused_operation():
    section = GUIDE.read_text().partition("| operations | reason")[2].partition("\n\n")[0]
    patterns = re.findall(r"`([\w*]+)`", section)
    of_steps = [op for op in refused() if not op.startswith(("Infeed", "Outfeed", "TPUReplicate"))]
    of_steps.remove("TPUCompilationResult")
    unnamed = [op for op in of_steps if not any(fnmatch.fnmatch(op, p) for p in patterns)]
    assert (unnamed, len(of_steps)) == ([], 47)


@pytest.mark.full
def test_the_list_is_that_of_the_release():
    done = installation("tensorflow-tpu").run("-c", REGISTERED)
    [line] = [line for line in done.stdout.splitlines() if line.startswith("ops: ")]
    assert line.split()[1:] == LIST.read_text().split()


def name(units=4, dtype=tf.float32, called="w"):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(dtype, [2, 8])
        weights = tf.compat.v1.get_variable(called, [8, units], dtype, use_resource=True)
        loss = tf.reduce_sum(x @ weights)
    plan = StepPlan(graph, tf.TensorSpec([2, 8], dtype), [x], fetches=(loss,), loss=loss)
    return module_cache.name_of(replica_step(plan, 1), {})


def test_variables_of_another_shape_are_another_step():
    assert name() == name()
    assert len({name(), name(units=5), name(dtype=tf.float64), name(called="v")}) == 4


@pytest.mark.parametrize(
    "dtype",
    ["float32", "bfloat16", "float16", "float64", "int8", "uint8", "int32", "int64", "bool"],
)
@pytest.mark.parametrize("rows", [2, 2**12])
def test_shape_and_type(dtype, rows):
    dtype = tf.as_dtype(dtype)
    variable = Untouched(rows * 2**11 * dtype.size).variable(tf.TensorShape([rows, 2**11]), dtype)
    assert variable.shape == [rows, 2**11]
    assert variable.dtype == dtype


def test_variables_larger_than_the_machine():
    size = 2 * psutil.virtual_memory().total
    untouched = Untouched(size)
    rows = size // 2**12
    before = psutil.Process().memory_info().rss
    first, second = (
        untouched.variable(tf.TensorShape([rows, 2**10]), tf.float32) for _ in range(2)
    )

    @tf.function(jit_compile=True, autograph=False)
    def step(x):
        first.assign_sub(second * x)

    ir = step.experimental_get_compiler_ir(tf.TensorSpec([]))
    text = ir(stage="stablehlo", platform_name="CPU")
    assert f"tensor<{rows}x1024xf32>" in text
    assert psutil.Process().memory_info().rss - before < 2**28


@pytest.mark.parametrize(
    "switches",
    [(False, False), (False, True), (True, False)],
    ids=["plain", "half_pixel_centers", "align_corners"],
)
@pytest.mark.parametrize(
    ("before", "after"), [((3, 4), (6, 8)), ((5, 1), (7, 1)), ((8, 9), (3, 4))]
)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
def test_it_is_tensorflows(before, after, switches, dtype):
    given = np.random.RandomState(0).randint(-8, 8, [2, *after, 3])
    gradients = tf.constant(given, dtype)
    named = dict(zip(("align_corners", "half_pixel_centers"), switches, strict=True))
    expected = tf.raw_ops.ResizeNearestNeighborGrad(grads=gradients, size=before, **named)

    @tf.function(jit_compile=True)
    def compiled(value):
        return replacements._resized_gradient("", [value, tf.constant(before)], named)

    [found] = compiled(gradients)
    np.testing.assert_array_equal(found, expected)  # sums of small integers are exact


def test_a_training_is_that_of_tensorflow(tmp_path):
    def model_fn(features, labels, mode, params):
        v1 = tf.compat.v1
        image = tf.reshape(features, [-1, 2, 2, 1]) * v1.get_variable("w", [2, 2, 1])
        resized = v1.image.resize_nearest_neighbor(image, [5, 6])
        weights = tf.reshape(tf.range(30.0), [1, 5, 6, 1]) / 30.0
        loss = tf.reduce_mean((resized * weights - 1.0) ** 2)
        optimizer = tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    found = []
    for runtime in RUNTIMES:
        estimator = on(runtime, 1, tmp_path / runtime, model_fn)
        estimator.train(train_input_fn, max_steps=5)
        found.append(variables(estimator))
    np.testing.assert_allclose(*(each["w"] for each in found), rtol=1e-6)
