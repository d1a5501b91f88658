"""Variables that take no memory, and what XLA makes of them."""

import psutil
import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.jax.lowering.untouched import Untouched


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
