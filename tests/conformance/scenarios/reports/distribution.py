"""Reports about tf.distribute under an estimator, on two CPUs."""

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from scenarios import models

_DEVICES = ["/cpu:0", "/cpu:1"]


def _mirrored():
    return tf2.distribute.MirroredStrategy(_DEVICES)


def _descent(loss):
    return tf.train.GradientDescentOptimizer(0.25).minimize(loss, tf.train.get_global_step())


def _model_fn(features, labels, mode):
    doubled = models.weight() * features["x"]
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions={"doubled": doubled})
    loss = tf.reduce_mean(tf.square(doubled - labels))
    metrics = models.mean_error(labels, doubled) if mode == "eval" else None
    train_op = _descent(loss) if mode == "train" else None
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def _estimator(model_dir, fn=_model_fn, strategy=None, **config):
    strategy = strategy or _mirrored()
    return models.estimator(model_dir, fn, train_distribute=strategy, **config)


def a_scaffold_of_each_replica(model_dir, record):
    """After tensorflow#20642, #21615: an init_fn that loads weights, with MirroredStrategy."""

    def model_fn(features, labels, mode):
        spec = _model_fn(features, labels, mode)

        def init_fn(scaffold, session):
            record("init_fn", type(scaffold).__name__)

        return spec._replace(scaffold=tf.train.Scaffold(init_fn=init_fn))

    est = _estimator(model_dir, model_fn)
    models.attempt(record, est.train, models.batches(), steps=2)


def an_estimator_of_one_device(model_dir, record):
    """After tensorflow#20784: OneDeviceStrategy, which trained in 1.8 and failed in 1.9."""
    strategy = tf2.distribute.OneDeviceStrategy("/cpu:0")

    def model_fn(features, labels, mode):
        context = tf2.distribute.get_replica_context()
        record(mode, tf2.distribute.has_strategy(), context.num_replicas_in_sync)
        return _model_fn(features, labels, mode)

    est = _estimator(model_dir, model_fn, strategy)
    est.train(models.batches(), steps=2)
    record(est.get_variable_value("w"), est.evaluate(models.batches(), steps=1))


def a_keras_model_of_two_replicas(model_dir, record):
    """After tensorflow#26207, #30947, #27696: model_to_estimator with MirroredStrategy."""
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=[2])
    model = tf.keras.Sequential([layer])
    model.compile(tf.keras.optimizers.legacy.SGD(0.125), "mse", metrics=["mae"])
    config = tf.estimator.RunConfig(train_distribute=_mirrored(), eval_distribute=_mirrored())

    def input_fn():
        x = np.arange(8, dtype=np.float32).reshape(4, 2) / 8.0
        return tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).repeat().batch(2)

    make = tf2.compat.v2.keras.estimator.model_to_estimator
    est = make(model, model_dir=model_dir, config=config)
    est.train(input_fn, steps=2)
    record(est.evaluate(input_fn, steps=2))


def an_evaluation_that_is_not_distributed(model_dir, record):
    """After unprocessing#6: train_distribute alone, and train_and_evaluate that does evaluate."""
    est = _estimator(model_dir, save_checkpoints_steps=2)
    train = tf.estimator.TrainSpec(models.batches(), max_steps=4)
    spec = tf.estimator.EvalSpec(models.batches(), steps=2, throttle_secs=0, start_delay_secs=0)
    record(tf.estimator.train_and_evaluate(est, train, spec))
    record(list(est.predict(models.batches(1))))


def an_input_that_is_no_dataset(model_dir, record):
    """After tensorflow#24013, #41523: tensors for a strategy, and an input_fn with a context."""
    est = _estimator(model_dir)
    models.attempt(record, est.train, lambda: ({"x": tf.ones([2])}, tf.ones([2])), steps=1)

    def input_fn(input_context=None):
        if input_context:
            record(input_context.num_input_pipelines, input_context.num_replicas_in_sync)
            record(input_context.get_per_replica_batch_size(4))
        return models.batches()()

    models.attempt(record, est.train, input_fn, steps=1)


def a_canned_model_of_two_replicas(model_dir, record):
    """After tensorflow#21767: a canned estimator with MirroredStrategy."""
    column = tf.feature_column.numeric_column("x", shape=())
    est = tf.estimator.LinearRegressor(
        [column],
        model_dir,
        optimizer=lambda: tf.train.GradientDescentOptimizer(0.125),
        config=tf.estimator.RunConfig(train_distribute=_mirrored(), tf_random_seed=1),
    )
    models.attempt(record, est.train, models.batches(), steps=2)
    models.attempt(record, est.evaluate, models.batches(), steps=1)


def the_evaluation_of_an_odd_number(model_dir, record):
    """After SSD.TensorFlow#43, tensorflow#41523: eval_distribute, and data that steps leave."""
    est = models.estimator(model_dir, _model_fn, eval_distribute=_mirrored())
    est.train(models.batches(), steps=1)
    for count, steps in ((4, 2), (4, None), (3, 1)):
        record(est.evaluate(models.batches(count), steps=steps, name=f"{count}-{steps}"))
