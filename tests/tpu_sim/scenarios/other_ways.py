"""Scenarios: other ways in than a TPUEstimator's methods."""

import itertools

import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as estimator_lib
from tpu_estimator_compat import layers

from ..model import BATCH, Run, X, Y, dataset, eval_input, mse, scenario, train_input


@scenario
def keras_model(run: Run) -> None:
    estimator = run.estimator()
    model = estimator.keras_model(train_input)
    history = model.fit(train_input({"batch_size": BATCH}), steps_per_epoch=10, epochs=2, verbose=0)
    run.see("history", history.history)
    batches = eval_input({"batch_size": BATCH})
    run.see("evaluation", model.evaluate(batches, verbose=0, return_dict=True))
    if run.hosts > 1:
        with pytest.raises(NotImplementedError, match="2 hosts"):
            model.predict(batches)
        return
    features = batches.map(lambda features, _: features)
    run.see("predictions", model.predict(features, verbose=0)["y"])
    # 50 examples in batches of 32: the second is dealt unevenly.
    partial = dataset(50).batch(BATCH).map(lambda features, _: features)
    run.see("of a partial batch", model.predict(partial, verbose=0)["y"])


@scenario
def train_distribute(run: Run) -> None:
    if run.on_jax:
        estimator = run.estimator(run_config={"train_distribute": tpu.TPUStrategy()})
        with pytest.raises(ValueError, match=r"train_distribute=\.\.\.\) is a strategy of TensorF"):
            estimator.train(train_input, max_steps=5)
        return

    def model(features, labels, mode):
        output = layers.dense(
            features["x"], 1, kernel_initializer=tf.glorot_uniform_initializer(seed=2)
        )
        if mode == tpu.ModeKeys.PREDICT:
            return estimator_lib.EstimatorSpec(mode, predictions={"y": output})
        loss = tf.losses.mean_squared_error(labels, output)
        if mode == tpu.ModeKeys.EVAL:
            return estimator_lib.EstimatorSpec(mode, loss=loss, eval_metric_ops=mse(labels, output))
        optimizer = tf.train.GradientDescentOptimizer(0.05)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return estimator_lib.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        return (
            tf2.data.Dataset.from_tensor_slices(({"x": X}, Y))
            .repeat()
            .batch(8, drop_remainder=True)
        )

    strategy = tpu.TPUStrategy(run.cluster, steps_per_run=2)
    config = estimator_lib.RunConfig(
        model_dir=run.model_dir,
        tf_random_seed=1,
        train_distribute=strategy,
        eval_distribute=strategy,
    )
    estimator = estimator_lib.Estimator(model, config=config)
    estimator.train(input_fn, max_steps=20)
    run.see("evaluation", estimator.evaluate(input_fn, steps=4))
    predictions = itertools.islice(estimator.predict(input_fn), 16)
    run.see("predictions", [p["y"] for p in predictions])


@scenario
def without_v2_behavior(run: Run) -> None:
    """The last of a process: what it switches off stays off."""
    tf.disable_v2_behavior()
    run.train_evaluate_predict(run.estimator())
