import pytest
import tensorflow as tf

import tpu_estimator_compat as tec
from tpu_estimator_compat.engine.jax.lowering.findings import Kind
from tpu_estimator_compat.tools.preflight.report import Depth, Verdict

from . import models
from .asking import input_fn, report


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
