"""`tf.contrib` inside of a TPUEstimator: layers, optimizers, host_call, on one and two replicas."""

import numpy as np
import pytest

import tpu_estimator_compat.v1 as tf

tpu = tf.contrib.tpu
opt = tf.contrib.opt

STEPS, BATCH = 6, 8
WEIGHTS = "fully_connected_1/weights"


def input_fn(params):
    random = np.random.RandomState(0)
    features = {
        "x": random.rand(64, 4).astype(np.float32),
        "id": np.arange(64, dtype=np.int64) % 5,
    }
    dataset = tf.data.Dataset.from_tensor_slices((features, random.rand(64, 1).astype(np.float32)))
    return dataset.repeat().apply(
        tf.contrib.data.map_and_batch(
            lambda features, label: (features, label), params["batch_size"], drop_remainder=True
        )
    )


def loss_of(features, labels):
    """A net of contrib layers with an embedding, whose gradient is sparse, without batch norm."""
    layers = tf.contrib.layers
    with tf.contrib.framework.arg_scope(
        [layers.fully_connected], weights_initializer=tf.random_uniform_initializer(-1, 1, seed=1)
    ):
        embedded = layers.embed_sequence(
            features["id"][:, tf.newaxis], 7, 4, initializer=tf.random_uniform_initializer(seed=2)
        )
        net = layers.fully_connected(features["x"] + embedded[:, 0], 3, tf.nn.tanh)
        net = layers.fully_connected(layers.layer_norm(net), 1, None)
    return tf.losses.mean_squared_error(labels, net)


def multitask():
    """The wrapper changes the optimizer that it gets, which CrossShardOptimizer can wrap."""
    inner = tf.train.AdamOptimizer(0.05)
    opt.MultitaskOptimizerWrapper(inner)
    return inner


OPTIMIZERS = {
    "AdamW": lambda: opt.AdamWOptimizer(0.01, 0.05),
    "MomentumW": lambda: opt.MomentumWOptimizer(0.01, 0.05, 0.9),
    "LazyAdam": lambda: opt.LazyAdamOptimizer(0.05),
    "Nadam": lambda: opt.NadamOptimizer(0.05),
    "AdaMax": lambda: opt.AdaMaxOptimizer(0.05),
    "LARS": lambda: opt.LARSOptimizer(5.0, skip_list=["biases"]),
    "MovingAverage": lambda: opt.MovingAverageOptimizer(tf.train.AdamOptimizer(0.05), 0.5),
    "Multitask": multitask,
}


def make(folder, make_optimizer, strategy=None, with_host_call=False):
    def host_call(step, loss):
        writer = tf.contrib.summary.create_file_writer(str(folder / "host"))
        with writer.as_default(), tf.contrib.summary.always_record_summaries():
            tf.contrib.summary.scalar("loss_on_host", tf.reduce_mean(loss), step=step[0])
            return tf.contrib.summary.all_summary_ops()

    def model_fn(features, labels, mode, params):
        del params
        loss = loss_of(features, labels)
        step = tf.train.get_global_step()
        optimizer = tpu.CrossShardOptimizer(make_optimizer())
        train_op = optimizer.minimize(loss, step)
        call = (host_call, [tf.reshape(step, [1]), tf.reshape(loss, [1])])
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, host_call=call if with_host_call else None
        )

    config = tpu.RunConfig(
        cluster=tf.contrib.cluster_resolver.TPUClusterResolver(""),
        model_dir=str(folder),
        tpu_config=tpu.TPUConfig(iterations_per_loop=3),
        train_distribute=strategy,
    )
    return tpu.TPUEstimator(
        model_fn, config=config, use_tpu=True, train_batch_size=BATCH, params={}
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_on_two_replicas(name, tmp_path, strategy):
    one = make(tmp_path / "one", OPTIMIZERS[name], strategy(1))
    two = make(tmp_path / "two", OPTIMIZERS[name], strategy(2))
    for estimator in (one, two):
        estimator.train(input_fn, steps=STEPS)
    names = [n for n in one.get_variable_names() if n != "global_step"]
    assert len(names) >= 9
    for n in names:
        a, b = one.get_variable_value(n), two.get_variable_value(n)
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5, err_msg=n)
    start = tf.train.load_variable(str(tmp_path / "one" / "model.ckpt-0"), WEIGHTS)
    assert np.abs(one.get_variable_value(WEIGHTS) - start).max() > 1e-3


@pytest.mark.parametrize("replicas", [1, 2])
def test_summaries_in_host_call(replicas, tmp_path, strategy):
    make(tmp_path, OPTIMIZERS["AdamW"], strategy(replicas), True).train(input_fn, steps=STEPS)
    [path] = (tmp_path / "host").glob("*tfevents*")
    steps = [e.step for e in tf.train.summary_iterator(str(path)) if e.summary.value]
    assert len(steps) == STEPS
    assert sorted(set(steps)) == steps


def test_a_batch_norm_of_slim_trains_and_evaluates(tmp_path):
    slim = tf.contrib.slim

    def model_fn(features, labels, mode):
        with slim.arg_scope([slim.batch_norm], decay=0.5, scale=True, is_training=mode == "train"):
            net = slim.fully_connected(features["x"], 1, None, normalizer_fn=slim.batch_norm)
        loss = tf.losses.mean_squared_error(labels, net)
        train_op = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.1))
        predictions = {"mean": tf.reduce_mean(net)}
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op)

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    batches = lambda: input_fn({"batch_size": BATCH})  # noqa: E731
    estimator.train(batches, steps=100)
    assert estimator.get_variable_value("global_step") == 100
    moved = estimator.get_variable_value("fully_connected/BatchNorm/moving_mean")
    assert np.abs(moved).max() > 1e-3
    assert estimator.evaluate(batches, steps=4)["loss"] < 0.2
