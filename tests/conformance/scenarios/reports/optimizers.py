"""Reports about optimizers, accumulated gradients and what counts steps."""

import tensorflow as tf2
import tensorflow.compat.v1 as tf
from scenarios import models
from support.sides.races import late_zero


def _trained(model_dir, record, train_op_of, steps=4, hooks=(), runs=None, **config):
    """Trains by a function of the loss and the step, and tells of all variables."""

    def model_fn(features, labels, mode):
        loss = models.loss_of(features, labels)
        train_op = train_op_of(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    config = {"save_summary_steps": 1, "log_step_count_steps": 1, **config}
    est = models.estimator(model_dir, model_fn, **config)
    est.train(models.batches(runs), steps=steps, hooks=list(hooks))
    record({name: est.get_variable_value(name) for name in est.get_variable_names()})
    return est


def updates_that_a_branch_collects(model_dir, record):
    """After tensorflow#14699: an update in UPDATE_OPS, made in a branch that is not taken."""

    def train_op(loss, step):
        count = tf.get_variable("count", [], initializer=tf.zeros_initializer(), trainable=False)

        def other():
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, count.assign_add(10.0))
            return 1.0

        tf.cond(tf.less(1, 2), lambda: 1.0, other)
        try:
            with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
                return models.descent(loss)
        except Exception as error:
            record(type(error).__name__)
            return models.descent(loss)

    _trained(model_dir, record, train_op, runs=4)


def gradients_that_every_second_step_applies(model_dir, record):
    """After horovod#2715, finetune#243, bert#875: accumulated, with the step raised in each."""

    def train_op(loss, step):
        weight = tf.trainable_variables()[0]
        sum_of = tf.get_variable("sum", [], initializer=tf.zeros_initializer(), trainable=False)
        at = tf.identity(step)
        gradient = tf.gradients(loss, weight)[0]
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        with tf.control_dependencies([late_zero(), loss]):
            added = sum_of.assign_add(gradient)

        def applied():
            with tf.control_dependencies([added]):
                applying = optimizer.apply_gradients([(sum_of / 2.0, weight)])
            with tf.control_dependencies([applying]):
                return tf.group(sum_of.assign(0.0))

        with tf.control_dependencies([added]):
            then = tf.cond(tf.equal(at % 2, 1), applied, tf.no_op)
        with tf.control_dependencies([then]):
            return step.assign_add(1)

    _trained(model_dir, record, train_op, 5, save_checkpoints_steps=2)


def a_step_that_counts_applied_gradients(model_dir, record):
    """After finetune#597: the global step is raised by apply_gradients, in each second run only."""

    def train_op(loss, step):
        runs = tf.get_variable("runs", [], tf.int32, tf.zeros_initializer(), trainable=False)
        at = tf.identity(runs)
        optimizer = tf.train.GradientDescentOptimizer(0.25)
        pairs = optimizer.compute_gradients(loss)
        with tf.control_dependencies([late_zero(), loss, *[g for g, _ in pairs]]):
            then = tf.cond(
                tf.equal(at % 2, 1), lambda: optimizer.apply_gradients(pairs, step), tf.no_op
            )
        with tf.control_dependencies([then]):
            return tf.group(runs.assign_add(1))

    hook = models.Recording(record)
    _trained(model_dir, record, train_op, 3, [hook], save_checkpoints_steps=2)


def gradients_of_a_branch(model_dir, record):
    """After tensorflow#21099, #18007: variables and gradients that come out of a cond."""

    def train_op(loss, step):
        optimizer = tf.train.GradientDescentOptimizer(0.25)
        weight = tf.trainable_variables()[0]
        at = tf.identity(step)
        double = tf.square(weight - 3.0)
        gradient = tf.cond(
            at > 1, lambda: tf.gradients(loss, weight)[0], lambda: tf.gradients(double, weight)[0]
        )
        try:
            pairs = tf.cond(
                at > 1,
                lambda: optimizer.compute_gradients(loss),
                lambda: optimizer.compute_gradients(double),
            )
            optimizer.apply_gradients(pairs)
        except Exception as error:
            record(type(error).__name__)
        with tf.control_dependencies([late_zero(), loss]):
            return optimizer.apply_gradients([(tf.identity(gradient), weight)], step)

    _trained(model_dir, record, train_op)


def an_accumulator_that_takes_more(model_dir, record):
    """After tensorflow#24005: a ConditionalAccumulator with more gradients than it needs."""

    def train_op(loss, step):
        weight = tf.trainable_variables()[0]
        gradient = tf.gradients(loss, weight)[0]
        accumulator = tf.ConditionalAccumulator(tf.float32, [], name="some")
        with tf.control_dependencies([accumulator.apply_grad(gradient, step)]):
            again = accumulator.apply_grad(gradient * 2.0, step)
        with tf.control_dependencies([again, late_zero()]):
            taken = accumulator.take_grad(1)
        optimizer = tf.train.GradientDescentOptimizer(0.25)
        tf.identity(accumulator.num_accumulated(), "left")
        return optimizer.apply_gradients([(taken, weight)], step)

    _trained(model_dir, record, train_op)


def updates_that_the_loss_waits_for(model_dir, record):
    """After tensorflow#7577: moving averages are bound to the loss, so evaluations update them."""

    def model_fn(features, labels, mode):
        hidden = tf.expand_dims(features["x"], 1)
        hidden = tf.layers.batch_normalization(hidden, training=True, momentum=0.5)
        loss = tf.reduce_mean(tf.square(models.weight() * hidden[:, 0] - labels))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            loss = tf.identity(loss)
        mean = next(v for v in tf.global_variables() if "moving_mean" in v.name)
        metric = {"moved": tf.metrics.mean(mean)} if mode == "eval" else None
        train_op = models.descent(loss) if mode == "train" else None
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops=metric
        )

    est = models.trained(model_dir, 2, model_fn)
    record({name: est.get_variable_value(name) for name in est.get_variable_names()})
    record(sorted(est.evaluate(models.batches(), steps=2)))


def a_keras_optimizer_of_the_global_step(model_dir, record):
    """After tensorflow#27696: a Keras optimizer, whose iterations are the global step."""
    optimizers = tf2.compat.v2.keras.optimizers

    def train_op(loss, step):
        schedule = optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)
        optimizer = optimizers.legacy.SGD(schedule, momentum=0.5)
        optimizer.iterations = step
        (update,) = optimizer.get_updates(loss * (1.0 + late_zero()), tf.trainable_variables())[:1]
        return update

    _trained(model_dir, record, train_op)


def the_same_variables_by_two_optimizers(model_dir, record):
    """After tensorflow#14699's model: two optimizers, each of which raises the step."""

    def train_op(loss, step):
        weight = tf.trainable_variables()[0]
        first = tf.train.MomentumOptimizer(0.125, 0.5, name="first")
        second = tf.train.AdamOptimizer(0.125, name="second")
        held = loss * (1.0 + late_zero())
        one = first.minimize(held, step, [weight])
        with tf.control_dependencies([one]):
            return second.minimize(tf.square(weight - 1.0), step, [weight])

    _trained(model_dir, record, train_op, 4, [models.Recording(record)])
