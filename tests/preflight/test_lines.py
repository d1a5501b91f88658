"""What a TPU does not take is found, with the user's line; the lines are marked in `models.py`."""

from __future__ import annotations

import inspect
import re

import pytest
import tensorflow as tf
from tensorflow.python.tpu.ops import tpu_ops

import tpu_estimator_compat as tec
from tpu_estimator_compat.lowering.findings import Kind, Severity
from tpu_estimator_compat.preflight.report import Depth, Verdict

from . import models
from .asking import estimator, input_fn, report

MARKS = {
    Severity.FAILS: re.compile(r"# fails:([\w ]*)"),
    Severity.MIGHT: re.compile(r"# might: ([\w ]*)"),
}
FAULTY = (
    models.strings,
    models.python,
    models.in_branches,
    models.tables,
    models.masked,
    models.not_constant,
    models.endless_loop,
    models.gradient_without_kernel,
    models.scalars,
    models.raises,
)


def marked(model_fn):
    """(severity, op, line number) of every mark in the source of `model_fn`."""
    lines, first = inspect.getsourcelines(model_fn)
    found = set()
    for number, line in enumerate(lines, first):
        for severity, mark in MARKS.items():
            if match := mark.search(line):
                ops = match[1].split() or [""]
                found |= {(severity, op, number) for op in ops}
    return found


@pytest.mark.parametrize("model_fn", FAULTY, ids=lambda f: f.__name__)
def test_every_marked_line_is_found_and_no_other(model_fn, tmp_path):
    found = report(model_fn, tmp_path).findings
    assert {(f.severity, f.op, f.source.line) for f in found} == marked(model_fn)
    for finding in found:
        assert finding.source.file == models.__file__
        assert finding.source.code in inspect.getsource(model_fn)


@pytest.mark.parametrize("model_fn", FAULTY, ids=lambda f: f.__name__)
def test_scan_finds_what_needs_no_lowering(model_fn, tmp_path):
    scanned = report(model_fn, tmp_path, depth="scan")
    lowered = report(model_fn, tmp_path)
    expected = [f for f in lowered.findings if "XLA refuses it" not in f.message]
    assert scanned.findings == expected
    assert scanned.reached in (Depth.SCAN, None)


def test_one_fault_does_not_hide_another_behind_it(tmp_path):
    def model_fn(features, labels, mode, params):
        twice = tf.numpy_function(lambda x: 2 * x, [features["x"]], tf.float32)
        twice.set_shape(features["x"].shape)
        kept = tf.boolean_mask(twice, labels > 1)
        again = tf.boolean_mask(kept, kept > 0)
        loss = tf.reduce_mean(models.logits_of(features)) + tf.reduce_sum(again)
        return models.spec(mode, loss)

    found = report(model_fn, tmp_path).findings
    assert [f.op for f in found] == ["PyFunc", "Where", "Where"]


def test_advice_says_what_to_write_instead(tmp_path):
    findings = [f for f in report(models.strings, tmp_path).findings if f.op]
    assert all(f.advice for f in findings)
    assert findings[0].kind is Kind.STRING


def test_certain_findings_come_first(tmp_path):
    def model_fn(features, labels, mode, params):
        mask = tf.boolean_mask(features["x"], labels > 0)
        text = tf.strings.to_number(tf.strings.as_string(tf.reduce_sum(mask)))
        return models.spec(mode, text + tf.reduce_mean(models.logits_of(features)))

    severities = [f.severity for f in report(model_fn, tmp_path).findings]
    assert severities == sorted(severities, key=[Severity.FAILS, Severity.MIGHT].index)
    assert len(set(severities)) == 2


def test_a_plain_step_is_lowered_and_nothing_is_claimed(tmp_path):
    found = report(models.plain, tmp_path)
    assert found.findings == []
    assert found.reached is Depth.LOWER
    assert found.verdict is Verdict.UNKNOWN
    assert "lower" in found.unknown


def test_nothing_is_written(tmp_path):
    report(models.plain, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_inputs_without_static_shape_are_named(tmp_path):
    def data(params):
        return input_fn(params).unbatch().batch(params["batch_size"])

    found = report(models.plain, tmp_path, data=data)
    messages = [f.message for f in found.findings if f.kind is Kind.INPUT]
    assert any("features['x']" in m and "(None, 8)" in m for m in messages)
    assert any("labels" in m for m in messages)
    assert found.verdict is Verdict.FAILS
    assert found.reached is Depth.LOWER, "with the batch size filled in, the rest is checked"


def test_strings_in_the_input_are_named(tmp_path):
    def data(params):
        return input_fn(params).map(lambda x, y: ({**x, "name": tf.as_string(y)}, y))

    [finding] = report(models.plain, tmp_path, data=data).findings
    assert finding.kind is Kind.STRING
    assert "features['name']" in finding.message


def test_input_fn_that_fails_is_told_with_its_line(tmp_path):
    def data(params):
        raise OSError("no such bucket")

    [finding] = report(models.plain, tmp_path, data=data).findings
    assert finding.kind is Kind.INPUT
    assert "OSError: no such bucket" in finding.message
    assert finding.source.code == 'raise OSError("no such bucket")'


def test_batches_that_cannot_be_shared_are_told(tmp_path):
    found = report(models.plain, tmp_path, train_batch_size=30)
    [finding] = found.findings
    assert finding.kind is Kind.CONFIGURATION
    assert "30 must be divisible by number of replicas 4" in finding.message
    assert found.verdict is Verdict.FAILS


def test_num_shards_of_another_topology_is_told(tmp_path):
    config = tec.RunConfig(model_dir=str(tmp_path), tpu_config=tec.TPUConfig(num_shards=8))
    made = tec.TPUEstimator(models.plain, config=config, train_batch_size=32)
    fits, fails = made.preflight(input_fn, ["v3:2x2", "v5e:2x2"], depth="lower").reports
    assert fits.findings == []
    [finding] = fails.findings
    assert "num_shards is 8" in finding.message
    assert "4 replicas" in finding.message
    assert fails.reached is Depth.LOWER


@pytest.mark.parametrize(
    ("topology", "replicas", "batch"), [("v5e:1x1", 1, 32), ("v5e:2x2", 4, 8), ("v3:2x2", 8, 4)]
)
def test_batch_sizes_are_those_of_the_topology(topology, replicas, batch, tmp_path):
    seen = {}

    def model_fn(features, labels, mode, params):
        seen.update(params, shape=features["x"].shape.as_list())
        return models.plain(features, labels, mode, params)

    found = report(model_fn, tmp_path, topology)
    assert (found.replicas, found.batch_size) == (replicas, batch)
    assert seen["batch_size"] == batch
    assert seen["shape"] == [batch, models.WIDTH]
    assert seen["use_tpu"] is True
    assert seen["context"].num_replicas == replicas


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


@pytest.mark.parametrize("mode", ["eval", "infer"])
def test_other_modes(mode, tmp_path):
    def model_fn(features, labels, mode, params):
        logits = models.logits_of(features)
        if mode == "infer":
            return tec.TPUEstimatorSpec(mode, predictions={"logits": logits})
        loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
        wrong = tf.strings.length(tf.strings.as_string(labels))

        def metric_fn(logits, wrong):
            return {"mean": tf.compat.v1.metrics.mean(logits)}

        return tec.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [logits, wrong]))

    found = report(model_fn, tmp_path, mode=mode)
    ops = {f.op for f in found.findings}
    # Every tensor of eval_metrics leaves the device, so what makes it runs there.
    assert ops == ({"AsString", "StringLength"} if mode == "eval" else set())
    assert found.batch_size == 8


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
    ("given", "message"),
    [
        ({"mode": "training"}, "mode must be one of"),
        ({"depth": "deep"}, "depth must be one of"),
        ({"topology": "v5e"}, "v5e"),
        ({"topology": "v99:2x2"}, "v99"),
    ],
)
def test_wrong_arguments(given, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        estimator(models.plain, tmp_path).preflight(input_fn, **given)
