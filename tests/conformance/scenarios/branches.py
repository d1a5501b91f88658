"""Branches and loops without TensorFlow 2's behaviour: writes, summaries and tensors in them."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _train(model_dir, record, model, steps=5, hooks=()):
    """Trains, and tells of all variables. `model` gives a loss and what trains it."""
    tf.disable_v2_behavior()

    def model_fn(features, labels, mode):
        step = tf.train.get_global_step()
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        u = tf.get_variable("u", [2], initializer=tf.zeros_initializer(), trainable=False)
        loss, train_op = model(tf.reduce_sum(v * features) ** 2, v, u, step)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    est = models.estimator(model_dir, model_fn, save_summary_steps=1)
    est.train(
        lambda: tf.data.Dataset.from_tensors(np.array([1.0, 2.0], "f4")).repeat(),
        hooks=list(hooks),
        steps=steps,
    )
    record({name: est.get_variable_value(name) for name in est.get_variable_names()})


def _minimize(loss, step, *before):
    """A step of training, after the loss and others are known."""
    gradients = tf.train.GradientDescentOptimizer(0.01).compute_gradients(loss)
    with tf.control_dependencies([loss, *before, *[g for g, _ in gradients if g is not None]]):
        return tf.train.GradientDescentOptimizer(0.01).apply_gradients(gradients, step)


def a_write_in_a_branch(model_dir, record):
    def model(loss, v, u, step):
        taken = tf.cond(step > 1, lambda: tf.assign_add(u, v), lambda: tf.identity(u))
        return loss, _minimize(loss, step, taken)

    _train(model_dir, record, model)


def an_update_in_a_branch(model_dir, record):
    def model(loss, v, u, step):
        return loss, tf.cond(
            step < 3, lambda: _minimize(loss, step), lambda: tf.group(tf.assign_add(step, 1))
        )

    _train(model_dir, record, model)


def a_read_after_a_write_in_a_branch(model_dir, record):
    def model(loss, v, u, step):
        gradient = tf.gradients(loss, v)[0]
        with tf.control_dependencies([gradient, loss]):
            added = tf.cond(step > 0, lambda: tf.assign_add(v, [1.0, 2.0]), lambda: tf.identity(v))
        with tf.control_dependencies([added]):
            written = tf.assign(u, v + v * 2.0)
        with tf.control_dependencies([written]):
            optimizer = tf.train.GradientDescentOptimizer(0.01)
            return loss, optimizer.apply_gradients([(gradient, v)], step)

    _train(model_dir, record, model)


def cases_that_write(model_dir, record):
    def model(loss, v, u, step):
        cases = [
            (step < 1, lambda: tf.assign_add(u, v)),
            (step < 3, lambda: tf.assign_sub(u, v * 0.5)),
        ]
        taken = tf.case(cases, default=lambda: tf.assign(u, v * 3.0))
        return loss, _minimize(loss, step, taken)

    _train(model_dir, record, model)


def a_loop_that_writes(model_dir, record):
    def model(loss, v, u, step):
        def body(i):
            with tf.control_dependencies([tf.assign_add(u, [1.0, 1.0])]):
                return i + tf.reduce_sum(u) * 0.1

        i = tf.while_loop(lambda i: i < 5.0, body, [0.0])
        rounds = tf.get_variable("i", [], initializer=tf.zeros_initializer(), trainable=False)
        return loss, _minimize(loss, step, tf.assign(rounds, i))

    _train(model_dir, record, model)


def a_map_that_writes(model_dir, record):
    def model(loss, v, u, step):
        def element(x):
            return x * tf.assign_add(u, [1.0, 1.0])[0]

        mapped = tf.map_fn(element, tf.ones([3]), parallel_iterations=1)
        loss = loss + tf.reduce_sum(mapped) * 0.01
        return loss, _minimize(loss, step)

    _train(model_dir, record, model)


def a_branch_in_a_loop(model_dir, record):
    def model(loss, v, u, step):
        def body(i):
            more, less = lambda: tf.assign_add(u, v * i), lambda: tf.assign_sub(u, [0.5, 0.5])
            with tf.control_dependencies([tf.cond(i > 1.0, more, less)]):
                return i + 1.0

        i = tf.while_loop(lambda i: i < 4.0, body, [0.0])
        return loss, _minimize(loss, step, i)

    _train(model_dir, record, model)


def variables_of_branches(model_dir, record):
    def model(loss, v, u, step):
        def branch():
            with tf.variable_scope("in"):
                made = tf.get_variable("made", [2], initializer=tf.ones_initializer())
            return loss + tf.reduce_sum(made * v)

        loss = tf.cond(step >= 0, branch, lambda: 0.0)
        record([(each.name, each.op.type) for each in tf.global_variables()])
        return loss, _minimize(loss, step)

    _train(model_dir, record, model)


def summaries_in_branches(model_dir, record):
    """Each is written in the steps in which its branch is taken."""

    def model(loss, v, u, step):
        def inner():
            tf.summary.scalar("inner", loss)
            return loss * 2.0

        def one():
            tf.summary.scalar("one", loss)
            tf.summary.histogram("values", v * 2.0)
            return tf.cond(step > 2, inner, lambda: loss)

        def two():
            tf.summary.scalar("two", loss)
            return loss * 3.0

        loss = tf.cond(step > 1, one, two)
        loss = tf.case([(step > 9, lambda: loss * 1.0)], default=lambda: _told("cases", loss))
        return loss, _minimize(loss, step)

    _train(model_dir, record, model, steps=4)


def _told(name, value):
    tf.summary.scalar(name, value)
    return value * 1.5


def new_summaries_in_branches_and_loops(model_dir, record):
    """TensorFlow 2's, which are written where they run."""
    new = tf.compat.v2.summary

    class Starting(tf.train.SessionRunHook):
        def begin(self):
            self.writer = new.create_file_writer(model_dir, filename_suffix=".own")

        def after_create_session(self, session, coord):
            session.run(self.start)

        def end(self, session):
            session.run(self.flush)

    hook = Starting()

    def model(loss, v, u, step):
        hook.begin()
        with hook.writer.as_default(), new.record_if(True):

            def branch(value):
                new.scalar("in_branch", value, step=step)
                return value * 2.0

            def body(i):
                new.scalar("in_loop", loss, step=step)
                return i + 1

            rounds = tf.while_loop(lambda i: i < 2, body, [0])
            after = loss + 0.0 * tf.cast(rounds, tf.float32)
            loss = tf.cond(step > 0, lambda: branch(after), lambda: after * 3.0)
            told = tf.summary.all_v2_summary_ops()
        hook.begin = lambda: None
        hook.start, hook.flush = hook.writer.init(), hook.writer.flush()
        return loss, _minimize(loss, step, *told)

    _train(model_dir, record, model, steps=3, hooks=[hook])


def a_tensor_that_leaves_a_branch(model_dir, record):
    """It has a value in the steps in which its branch is taken: here, in all."""

    def model(loss, v, u, step):
        kept = []

        def branch():
            kept.append(tf.multiply(loss, 3.0, name="inside"))
            return loss * 2.0

        loss = tf.cond(step >= 0, branch, lambda: loss)
        tf.summary.scalar("left", kept[0] + 1.0)
        loss = loss + kept[0] * 0.1
        return loss, _minimize(loss, step)

    _train(model_dir, record, model, steps=3)


def a_tensor_of_a_branch_that_is_not_taken(model_dir, record):
    def model(loss, v, u, step):
        kept = []

        def branch():
            kept.append(loss * 3.0)
            return loss * 2.0

        loss = tf.cond(step >= 1, branch, lambda: loss)
        loss = loss + kept[0]
        return loss, _minimize(loss, step)

    _train(model_dir, record, model, steps=3)


def an_operation_that_leaves_a_branch(model_dir, record):
    def model(loss, v, u, step):
        kept = []

        def branch():
            kept.append(tf.assign_add(u, [1.0, 2.0]).op)
            return loss * 2.0

        loss = tf.cond(step >= 1, branch, lambda: loss)
        return loss, tf.group(_minimize(loss, step), kept[0])

    _train(model_dir, record, model, steps=3)


def lists_of_one(model_dir, record):
    """A cond or case of `[x]` is `x`, if it is not strict."""

    def model(loss, v, u, step):
        for make in (
            lambda: tf.cond(step > 1, lambda: [loss], lambda: [-loss]),
            lambda: tf.cond(step > 1, lambda: (loss,), lambda: -loss),
            lambda: tf.cond(step > 1, lambda: [(loss, loss)], lambda: [(-loss, loss)]),
            lambda: tf.cond(step > 1, lambda: [[loss]], lambda: [[-loss]]),
            lambda: tf.cond(step > 1, lambda: [tf.no_op()], lambda: [tf.no_op()]),
            lambda: tf.cond(step > 1, lambda: [loss], lambda: [-loss], strict=True),
            lambda: tf.case([(step > 1, lambda: [loss])], lambda: [-loss]),
            lambda: tf.case([(step > 1, lambda: [loss])], lambda: [-loss], strict=True),
            lambda: tf.function(lambda: tf.cond(step > 1, lambda: [loss], lambda: [-loss]))(),
        ):
            made = make()
            record(len(made) if isinstance(made, (list, tuple)) else "one")
        loss = tf.cond(step > 1, lambda: [loss], lambda: [loss * 2.0]) * 2.0
        return loss, _minimize(loss, step)

    _train(model_dir, record, model, steps=3)
