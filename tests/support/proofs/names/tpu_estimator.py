import tensorflow as tf2
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from support.proofs import proves

TPU = "tf.contrib.tpu"
DEEP = "tf.contrib.tpu.python.tpu"


def input_fn(params):
    dataset = tf2.data.Dataset.from_tensors(([1.0], [2.0])).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((features * weight - labels) ** 2)
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def trains(estimator_class, folder, hooks=()):
    config = tpu.RunConfig(
        model_dir=str(folder), tpu_config=tpu.TPUConfig(2), log_step_count_steps=2
    )
    estimator = estimator_class(model_fn, config=config, use_tpu=True, train_batch_size=4)
    estimator.train(input_fn, steps=4, hooks=[make(estimator) for make in hooks])
    assert estimator.get_variable_value("weight") > 1.0
    return estimator


@proves(f"{DEEP}.tpu_context")
def has_contexts(tpu_context, tmp_path):
    seen = []

    def looking_input_fn(params):
        seen.append(params["context"])
        return input_fn(params)

    config = tpu.RunConfig(model_dir=str(tmp_path), master="")
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    estimator.train(looking_input_fn, steps=1)
    # Off TPU a context is given only where the original gave one.
    assert all(isinstance(context, tpu_context.TPUContext) for context in seen)
    assert seen


@proves(f"{TPU}.AsyncCheckpointSaverHook")
def saves(hook, tmp_path):
    other = tmp_path / "other"

    def make(estimator):
        del estimator
        return hook(str(other), save_steps=2)

    trains(tpu.TPUEstimator, other, [make])
    assert tf.train.latest_checkpoint(str(other)) == str(other / "model.ckpt-4")
