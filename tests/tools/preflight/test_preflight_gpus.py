"""Real models for GPUs that are not there: the digits, a convnet, and a layer of BERT."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import tpu_estimator_compat as tec

from . import bert

DIGITS = pathlib.Path(__file__).parents[3] / "migration_guide" / "examples" / "digits.py"

pytestmark = pytest.mark.slow

CONVNET = """
import numpy as np
import tensorflow as tf

def input_fn(params):
    images = np.zeros([params["batch_size"], 28, 28, 1], np.float32)
    labels = np.zeros([params["batch_size"]], np.int32)
    return tf.data.Dataset.from_tensors((images, labels)).repeat()

def model_fn(features, labels, mode, params):
    x = tf.layers.conv2d(features, 32, 3, activation=tf.nn.relu)
    x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.conv2d(x, 64, 3, activation=tf.nn.relu)
    logits = tf.layers.dense(tf.layers.flatten(x), 10)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.AdamOptimizer())
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

config = tf.contrib.tpu.RunConfig(model_dir="convnet")
tf.contrib.tpu.TPUEstimator(model_fn, config=config, train_batch_size=256, params={}).train(
    input_fn, steps=1
)
"""


def preflight(folder, *arguments):
    """Exit code and reports of the command."""
    done = subprocess.run(
        [sys.executable, "-m", "tpu_estimator_compat", "preflight", "--json", *arguments],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr[-5000:]
    return done.returncode, json.loads(done.stdout)["reports"]


def test_the_digits(with_gpu_compiler, tmp_path):
    code, reports = preflight(tmp_path, "--topology", "h100:1,h100:4", str(DIGITS))
    assert code == 0
    one, four = reports
    assert (one["replicas"], four["replicas"]) == (1, 4)
    assert one["batch_size"] == 4 * four["batch_size"]
    assert one["collectives"]["compiled"] == {}
    assert four["collectives"]["compiled"] == {"all-reduce": 1}
    for report in reports:
        memory = report["memory"]
        assert memory["arguments"] > report["variable_bytes"]
        assert memory["total"] < report["fits_below"] < report["hbm"]
    assert one["flops"] == pytest.approx(4 * four["flops"], rel=0.1)


def test_a_convnet_and_its_largest_buffers(with_gpu_compiler, tmp_path):
    (tmp_path / "convnet.py").write_text(CONVNET)
    code, [report] = preflight(tmp_path, "--topology", "h100:4", "convnet.py")
    assert code == 0
    assert any("5 convolutions call cuDNN" in note for note in report["notes"])
    share = report["memory"]["total"] / (report["hbm"] / report["memory_share"])
    code, [close] = preflight(
        tmp_path, "--topology", "h100:4", "--memory-share", f"{share / 0.95:.9f}", "convnet.py"
    )
    assert (code, close["verdict"]) == (2, "close: may not fit")
    code, [large] = preflight(
        tmp_path, "--topology", "h100:4", "--memory-share", f"{share / 1.1:.9f}", "convnet.py"
    )
    assert (code, large["verdict"]) == (1, "fails")
    [finding] = large["findings"]
    assert "of memory, of" in finding["message"]
    assert "JAX takes of a device of h100:4" in finding["message"]
    for report in (close, large):
        largest = report["buffers"][0]
        assert largest["op"] == "conv2d/Conv2D"
        assert largest["source"]["code"].strip().startswith("x = tf.layers.conv2d(features")
        assert all(buffer["op"] for buffer in report["buffers"])


@pytest.mark.parametrize(
    ("topology", "replicas"),
    [
        ("h100:1", 1),
        pytest.param("h100:4", 4, marks=pytest.mark.full),
        pytest.param("v5e:2x2", 4, marks=[pytest.mark.full, pytest.mark.minutes]),
    ],
)
def test_a_layer_of_bert(clients, with_gpu_compiler, tmp_path, topology, replicas):
    """Its optimizer exchanges gradients, and its embeddings are products with one-hot vectors."""
    sizes = bert.OF_ONE_SMALL_LAYER
    found = bert.report(clients, tmp_path, topology, replicas, True, sizes)
    assert found["parameters"] == bert.PARAMETERS_OF_ONE_SMALL_LAYER
    size = 4 * found["parameters"]
    assert found["memory"]["arguments"] == pytest.approx(3 * size, rel=0.1)  # Adam's slots
    one_hot_product = 2 * (32 * 128) * sizes["vocab_size"] * sizes["hidden_size"]
    assert found["flops"] > 2 * one_hot_product  # with its gradient
    collectives = found["collectives"]
    assert (collectives["all_reduces"] > 25) == (replicas > 1)
    assert (collectives["all_reduce_bytes"] >= size) == (replicas > 1)
    assert (0 < sum(collectives["compiled"].values()) < 20) == (replicas > 1)


WIDTH = 1024


def products(features, labels, mode, params):
    """Two products of matrices, and nothing besides that counts."""
    first = tf.compat.v1.get_variable("first", [WIDTH, WIDTH])
    second = tf.compat.v1.get_variable("second", [WIDTH, WIDTH])
    loss = tf.reduce_mean(tf.square((features @ first) @ second))
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    train_op = tf.compat.v1.tpu.CrossShardOptimizer(optimizer).minimize(
        loss, tf.compat.v1.train.get_global_step()
    )
    return tec.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.parametrize("cores", [None, 2, 4])
def test_flops_are_those_of_one_device(with_gpu_compiler, tmp_path, monkeypatch, cores):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shards = tec.TPUConfig(num_cores_per_replica=cores, iterations_per_loop=1)
    estimator = tec.TPUEstimator(
        products,
        config=tec.RunConfig(model_dir=str(tmp_path / "model"), tpu_config=shards),
        train_batch_size=512,
    )

    def input_fn(params):
        return tf.data.Dataset.from_tensors(np.zeros([params["batch_size"], WIDTH], np.float32))

    [report] = estimator.preflight(input_fn, "h100:4").reports
    assert report.replicas == 4 // (cores or 1)
    # Each product has one more for its weights' gradient; the second also one for its input's.
    assert report.flops == pytest.approx(5 * 2 * 512 * WIDTH**2 / 4, rel=0.05)
