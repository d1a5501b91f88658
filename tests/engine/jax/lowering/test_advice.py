"""What TensorFlow's own TPU build computes runs here too, or a row says why it is refused."""

import fnmatch
import pathlib
import re

import pytest
from support.installations import installation

from tpu_estimator_compat.engine.jax.lowering import replacements, xla_collectives
from tpu_estimator_compat.engine.jax.lowering.advice import advice
from tpu_estimator_compat.engine.jax.lowering.scan import supported_ops
from tpu_estimator_compat.engine.step import collectives

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
