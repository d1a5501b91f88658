import pytest
import tensorflow as tf
from tensorflow.python.tpu.ops import tpu_ops

import tpu_estimator_compat as tec
from tpu_estimator_compat.engine.jax.lowering.findings import Kind, Severity
from tpu_estimator_compat.tools.preflight import sizes
from tpu_estimator_compat.tools.preflight.report import Depth, Verdict

from . import models
from .asking import report


def test_all_reduces_are_counted_where_there_are_replicas(tmp_path):
    alone = report(models.plain, tmp_path, "v5e:1x1").collectives
    several = report(models.plain, tmp_path, "v5e:2x2").collectives
    assert (alone.all_reduces, alone.all_reduce_bytes) == (0, 0)
    assert (several.all_reduces, several.all_reduce_bytes) == (1, models.WIDTH * 4 * 4)


def test_other_exchanges_are_lowered_with_their_gradients(tmp_path):
    def model_fn(features, labels, mode, params):
        logits = models.logits_of(features)
        sent = tpu_ops.collective_permute(logits, [[0, 1], [1, 2], [2, 3]])
        pieces = tpu_ops.all_to_all(sent, 1, 0, 4, [[0, 1, 2, 3]])
        return models.spec(mode, tf.reduce_mean(pieces**2))

    found = report(model_fn, tmp_path)
    assert found.findings == []
    assert (found.collectives.all_reduces, found.collectives.others) == (1, 4)


def test_replicas_that_exchange_nothing_are_told(tmp_path):
    def model_fn(features, labels, mode, params):
        loss = tf.reduce_mean(models.logits_of(features))
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
        step = tf.compat.v1.train.get_global_step()
        return tec.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, step))

    assert report(model_fn, tmp_path, "v5e:1x1").findings == []
    [finding] = report(model_fn, tmp_path, "v5e:2x2").findings
    assert finding.severity is Severity.FAILS  # training refuses it, as the original did
    assert "CrossShardOptimizer must be used for model training on TPUs" in finding.message

    def beside_the_step(features, labels, mode, params):
        tf.compat.v1.tpu.cross_replica_sum(tf.zeros([]))  # which training takes for an exchange
        return model_fn(features, labels, mode, params)

    [finding] = report(beside_the_step, tmp_path, "v5e:2x2").findings
    assert finding.severity is Severity.MIGHT
    assert "CrossShardOptimizer" in finding.advice


def test_exchanges_in_a_branch_count(tmp_path):
    def model_fn(features, labels, mode, params):
        loss = tf.reduce_mean(models.logits_of(features))
        optimizer = tf.compat.v1.tpu.CrossShardOptimizer(
            tf.compat.v1.train.GradientDescentOptimizer(0.1)
        )
        gradients = optimizer.compute_gradients(loss)
        step = tf.compat.v1.train.get_global_step()
        train_op = tf.cond(
            step > 1,
            lambda: tf.group(optimizer.apply_gradients(gradients)),
            lambda: tf.group(step.assign_add(1)),
        )
        return tec.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    found = report(model_fn, tmp_path)
    assert found.findings == []
    assert found.collectives.all_reduces == 1
    assert found.collectives.all_reduce_bytes == models.WIDTH * 4 * 4


def test_a_model_too_large_needs_no_compiler(tmp_path):
    found = report(models.huge, tmp_path, depth="compile")
    [finding] = [f for f in found.findings if f.kind is Kind.MEMORY]
    assert "48.00 GiB" in finding.message
    assert "15.75 GiB" in finding.message
    assert found.buffers[0].op == "table"
    assert found.buffers[0].size == 24 * 2**30
    assert "get_variable" in found.buffers[0].source.code
    assert found.reached is Depth.LOWER


def test_layers_add_up_to_the_variables(tmp_path):
    found = report(models.plain, tmp_path)
    assert sum(x.variables + x.slots for x in found.layers) == found.variable_bytes
    assert found.parameters == models.WIDTH * 4
    assert {x.name: x.variables for x in found.layers}["layer"] == models.WIDTH * 4 * 4


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (tf.bfloat16, "bf16"),
        (tf.float32, "f32"),
        (tf.int32, "s32"),
        (tf.uint8, "u8"),
        (tf.bool, "pred"),
        (tf.complex64, "c64"),
    ],
)
def test_shapes_are_written_as_the_compiler_does(dtype, name):
    with tf.Graph().as_default():
        handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=[64, 10])
    assert sizes.shape_of(handle.op) == f"{name}[64,10]"


@pytest.mark.slow
def test_a_batch_too_large_is_told_with_its_lines(wide):
    found = wide(2**12)
    [finding] = found.findings
    assert finding.kind is Kind.MEMORY
    assert found.verdict is Verdict.FAILS
    assert found.hbm < found.memory.total < 1.2 * found.hbm
    assert found.layers[-1].name == "second"
    assert sum(x.temporaries for x in found.layers) <= found.memory.temporaries
    largest = found.buffers[0]
    assert largest.size >= 2**12 * 2**22
    assert largest.source.code == 'hidden = tf.nn.relu(features["x"] @ first)'
