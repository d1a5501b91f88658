import os
import signal

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def numbers_of_steps_with_a_fraction(model_dir, record):
    """Quotients, as in Python 2: training ends with the first step beyond the number."""
    estimator = models.estimator(
        model_dir,
        save_checkpoints_steps=10 / 4,
        save_summary_steps=3 / 2,
        log_step_count_steps=5 / 2,
    )
    estimator.train(models.batches(), steps=7 / 2)
    record(estimator.get_variable_value("global_step"))
    estimator.train(models.batches(), max_steps=41 / 5)
    record(estimator.get_variable_value("global_step"))
    estimator.train(models.batches(), max_steps=9.0)
    estimator.train(models.batches(3), steps=float("inf"))
    return estimator.get_variable_value("global_step")


def train_until_the_data_ends(model_dir, record):
    estimator = models.estimator(model_dir)
    estimator.train(models.batches(5))
    return estimator.get_variable_value("global_step")


def data_ends_before_steps(model_dir, record):
    models.estimator(model_dir).train(models.batches(3), steps=10)


def data_ends_before_max_steps(model_dir, record):
    models.estimator(model_dir).train(models.batches(3), max_steps=10)


def no_data_at_all(model_dir, record):
    estimator = models.estimator(model_dir)
    estimator.train(models.batches(0), steps=3)
    return estimator.latest_checkpoint()


def input_fn_raises_stop_iteration(model_dir, record):
    """A generator that ends within a py_func ends training, as OutOfRange does."""

    def input_fn():
        def generator():
            for x in (0.25, 0.5):
                yield {"x": np.array([x], np.float32)}, np.array([2 * x], np.float32)

        types = ({"x": tf.float32}, tf.float32)
        return tf.data.Dataset.from_generator(generator, types, ({"x": [1]}, [1]))

    models.estimator(model_dir).train(input_fn)


def input_error_within_the_data(model_dir, record):
    def input_fn():
        checked = models.batches()()
        return checked.map(
            lambda f, y: ({"x": tf.debugging.check_numerics(f["x"] / (y[0] - 1.25), "no")}, y)
        )

    models.estimator(model_dir, save_checkpoints_steps=1).train(input_fn, steps=10)


def error_of_an_op_in_the_step(model_dir, record):
    def model_fn(features, labels, mode):
        check = tf.Assert(tf.train.get_global_step() < 2, ["too far:", tf.train.get_global_step()])
        with tf.control_dependencies([check]):
            loss = tf.identity(models.loss_of(features, labels))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    models.estimator(model_dir, model_fn, save_checkpoints_steps=2).train(models.batches(), steps=5)


def ctrl_c(model_dir, record):
    """Ctrl-C is a KeyboardInterrupt of `train`; the original saved nothing."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it

    class Presses(models.Recording):
        def after_run(self, run_context, run_values):
            super().after_run(run_context, run_values)
            if self.runs == 3:
                os.kill(os.getpid(), signal.SIGINT)

    try:
        models.estimator(model_dir).train(models.batches(), hooks=[Presses(record)], steps=5)
    except KeyboardInterrupt:
        record("interrupted")


def nan_loss_ends_training(model_dir, record):
    def model_fn(features, labels, mode):
        step = tf.cast(tf.train.get_global_step(), tf.float32)
        loss = models.loss_of(features, labels) + tf.log(1.0 - step)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    models.estimator(model_dir, model_fn, save_checkpoints_steps=2).train(models.batches(), steps=5)


def params_reach_the_model_fn(model_dir, record):
    def model_fn(features, labels, mode, params, config):
        record(mode, params, config.model_dir, config.save_summary_steps)
        params["b"].append(3.0)
        config._save_summary_steps = 7
        return models.model_fn(features, labels, mode)

    estimator = models.trained(model_dir, 1, model_fn, params={"a": 1, "b": [2.0]})
    estimator.evaluate(models.batches(), steps=1)
    return estimator.params


def params_reach_the_input_fn(model_dir, record):
    def input_fn(params, config, mode):
        record(params, config.model_dir, mode)
        return models.batches()()

    estimator = models.estimator(model_dir, params=None)
    estimator.train(input_fn, steps=1)
    estimator.evaluate(input_fn, steps=1)
    next(estimator.predict(input_fn))


def calls_of_the_model_fn(model_dir, record):
    def model_fn(features, labels, mode):
        record("model_fn", mode, labels is None)
        return models.model_fn(features, labels, mode)

    def input_fn():
        record("input_fn")
        return models.batches(4)()

    estimator = models.estimator(model_dir, model_fn)
    estimator.train(input_fn, steps=2)
    estimator.train(input_fn, steps=2)
    estimator.evaluate(input_fn)
    return len(list(estimator.predict(input_fn)))


def model_fn_without_labels(model_dir, record):
    def model_fn(features, mode):
        loss = models.loss_of(features, 1.0)
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predictions=loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    def input_fn():
        return models.batches()().map(lambda features, labels: features)

    estimator = models.estimator(model_dir, model_fn)
    estimator.train(input_fn, steps=2)
    record(estimator.evaluate(input_fn, steps=2))
    estimator.train(models.batches(), steps=1)


def model_fn_is_an_object(model_dir, record):
    import functools

    class Model:
        def __call__(self, features, labels, mode):
            return models.model_fn(features, labels, mode)

        def method(self, features, labels, mode, scale):
            record("scale", scale)
            return self(features, labels, mode)

    for i, fn in enumerate([Model(), functools.partial(Model().method, scale=3)]):
        models.estimator(f"{model_dir}{i}", fn).train(models.batches(), steps=1)


def train_op_is_a_tensor(model_dir, record):
    def model_fn(features, labels, mode):
        loss = models.loss_of(features, labels)
        counter = tf.get_variable("counter", [], tf.int32, tf.zeros_initializer())
        with tf.control_dependencies([models.descent(loss)]):
            train_op = tf.assign_add(counter, 10)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    models.estimator(model_dir, model_fn).train(models.batches(), steps=3)


def loss_is_not_a_scalar(model_dir, record):
    def model_fn(features, labels, mode, params):
        loss = tf.tile([models.loss_of(features, labels)], [params["n"]])
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    models.estimator(model_dir, model_fn, {"n": 1}).train(models.batches(), steps=2)
    models.estimator(model_dir, model_fn, {"n": 2}).train(models.batches(), steps=2)


def steps_and_max_steps(model_dir, record):
    estimator = models.estimator(model_dir)
    for steps in ({"steps": 1, "max_steps": 1}, {"steps": 0}, {"max_steps": 0}, {"steps": -1}):
        models.attempt(record, estimator.train, models.batches(), **steps)


def learning_rate_by_global_step(model_dir, record):
    def model_fn(features, labels, mode):
        loss = models.loss_of(features, labels)
        step = tf.train.get_or_create_global_step()
        rate = tf.train.piecewise_constant(step, [1, 3], [0.5, 0.25, 0.125])
        tf.summary.scalar("rate", rate)
        train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = models.trained(model_dir, 3, model_fn, save_summary_steps=1)
    estimator.train(models.batches(), steps=3)


def update_ops_run_with_the_step(model_dir, record):
    def model_fn(features, labels, mode, params):
        mean = tf.get_variable("mean", [], trainable=False, initializer=tf.zeros_initializer())
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(mean, 1.0))
        loss = models.loss_of(features, labels)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS) if params["depends"] else []
        with tf.control_dependencies(updates):
            train_op = models.descent(loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    for depends in (True, False):
        models.trained(f"{model_dir}{depends}", 3, model_fn, {"depends": depends})


def seeds_of_the_config(model_dir, record):
    def model_fn(features, labels, mode):
        drawn = tf.get_variable("drawn", [3], initializer=tf.random_normal_initializer())
        loss = models.loss_of(features, labels) + tf.reduce_sum(drawn) * 0.0
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    for seed in (1, 2):
        models.trained(f"{model_dir}{seed}", 1, model_fn, tf_random_seed=seed)
