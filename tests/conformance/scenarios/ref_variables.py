"""Ref variables, which scripts without TensorFlow 2's behaviour make: what sees a write, and names.

What looks at a variable waits for the write, or the write for it: the original leaves the rest to
chance.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models
from support.sides.races import late_zero

FEATURES = np.linspace(-1.0, 1.0, 32).reshape(8, 4).astype("f4")


def _input_fn():
    return tf.data.Dataset.from_tensors((FEATURES, FEATURES.sum(1, keepdims=True))).repeat()


def _net(x, name, size=4):
    values = np.linspace(-0.5, 0.5, 4 * size).reshape(4, size).astype("f4")
    weight = tf.get_variable(name, [4, size], initializer=tf.constant_initializer(values))
    return tf.tanh(tf.matmul(x, weight))


def _loss(hidden, labels):
    return tf.reduce_mean(tf.square(tf.reduce_sum(hidden, 1, keepdims=True) - labels))


def _train(model_dir, record, model, hooks=(), steps=4, **config):
    """Trains, and tells of all variables. `model` gives a loss and what trains it."""
    tf.disable_v2_behavior()

    def model_fn(features, labels, mode):
        loss, train_op, *more = model(features, labels)
        with tf.control_dependencies([loss, train_op]):
            count = tf.assign_add(tf.train.get_global_step(), 1)
        train_op = tf.group(train_op, count)
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=train_op, training_hooks=more[0] if more else None
        )

    est = models.estimator(model_dir, model_fn, **config)
    est.train(_input_fn, hooks=list(hooks), steps=steps)
    record({name: est.get_variable_value(name) for name in est.get_variable_names()})


def two_minimizes(model_dir, record):
    def model(x, y):
        loss = _loss(_net(_net(x, "first"), "second"), y)
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        with tf.control_dependencies([optimizer.minimize(loss)]):
            return loss, optimizer.minimize(loss)

    _train(model_dir, record, model)


def a_gan(model_dir, record):
    """The generator's update sees the discriminator's."""

    def model(x, y):
        loss = _loss(_net(_net(x, "gen"), "disc"), y)
        gen, disc = tf.trainable_variables("gen"), tf.trainable_variables("disc")
        first = tf.train.AdamOptimizer(0.1).minimize(loss, var_list=disc)
        with tf.control_dependencies([first]):
            return loss, tf.train.AdamOptimizer(0.1).minimize(-loss, var_list=gen)

    _train(model_dir, record, model)


def _recurrent(x, y):
    cell = tf.nn.rnn_cell.BasicRNNCell(4)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.stack([x, x], 1), dtype=tf.float32)
    loss = _loss(outputs[:, -1], y)
    return loss, tf.train.GradientDescentOptimizer(0.05).minimize(loss)


def _with_kernels(model):
    """Initial values that no generator draws, of an RNN's cell."""

    def made(x, y):
        initial = tf.constant_initializer(np.linspace(-0.4, 0.4, 32).reshape(8, 4))
        with tf.variable_scope("", initializer=initial):
            return model(x, y)

    return made


def weights_of_a_recurrent_net_clipped_after_the_update(model_dir, record):
    def model(x, y):
        loss, train = _recurrent(x, y)
        with tf.control_dependencies([train]):
            clipped = [v.assign(tf.clip_by_value(v, -0.3, 0.3)) for v in tf.trainable_variables()]
        return loss, tf.group(*clipped)

    _train(model_dir, record, _with_kernels(model))


def weights_of_a_recurrent_net_that_decay_after_the_update(model_dir, record):
    def model(x, y):
        loss, train = _recurrent(x, y)
        with tf.control_dependencies([train]):
            return loss, tf.group(*[v.assign(v * 0.9) for v in tf.trainable_variables()])

    _train(model_dir, record, _with_kernels(model))


def an_average_of_a_recurrent_net_after_the_update(model_dir, record):
    def model(x, y):
        loss, train = _recurrent(x, y)
        with tf.control_dependencies([train]):
            average = tf.train.ExponentialMovingAverage(0.5)
            return loss, average.apply(tf.trainable_variables())

    _train(model_dir, record, _with_kernels(model))


def a_scatter_and_then_a_gather(model_dir, record):
    def model(x, y):
        memory = tf.get_variable("memory", [3, 4], initializer=tf.zeros_initializer())
        written = tf.scatter_update(memory, [0, 2], x[:2] * tf.reduce_sum(_net(x, "v")))
        loss = _loss(_net(x, "w"), y) + tf.reduce_sum(tf.gather(written, [0]))
        variables = tf.trainable_variables("w")
        return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=variables)

    _train(model_dir, record, model)


def accumulated_gradients(model_dir, record):
    """The snippet that is copied most: each second step applies the sum of two."""

    def model(x, y):
        loss, step = _loss(_net(x, "w"), y), tf.train.get_global_step()
        optimizer = tf.train.AdamOptimizer(0.1)
        variables = tf.trainable_variables()
        sums = [
            tf.Variable(tf.zeros_like(tv.initialized_value()), trainable=False) for tv in variables
        ]
        gradients = optimizer.compute_gradients(loss, variables)
        add = [s.assign_add(g) for s, (g, _) in zip(sums, gradients, strict=True)]

        def apply():
            means = [(s / 2.0, v) for s, v in zip(sums, variables, strict=True)]
            with tf.control_dependencies([optimizer.apply_gradients(means)]):
                return tf.group(*[s.assign(tf.zeros_like(s)) for s in sums])

        with tf.control_dependencies(add):
            return loss, tf.cond(tf.equal(step % 2, 1), apply, tf.no_op)

    _train(model_dir, record, model, steps=5)


def a_getter_that_asks_for_the_truth_of_a_variable(model_dir, record):
    def model(x, y):
        average = tf.train.ExponentialMovingAverage(0.5)
        loss = _loss(_net(x, "w"), y)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([train]):
            averaged = average.apply(tf.trainable_variables())

        def getter(getter, name, *args, **kwargs):
            variable = getter(name, *args, **kwargs)
            ema_variable = average.average(variable)
            return ema_variable if ema_variable else variable

        with (
            tf.control_dependencies([averaged]),
            tf.variable_scope("", reuse=True, custom_getter=getter),
        ):
            check = tf.identity(_loss(_net(x, "w"), y), "averaged_loss")
        return loss, tf.group(averaged, check)

    hook = models.Fetching(record, ["averaged_loss:0"])
    _train(model_dir, record, model, [hook])


def what_the_variables_are(model_dir, record):
    def model(x, y):
        loss = _loss(_net(x, "w"), y)
        train = tf.train.AdamOptimizer(0.1).minimize(
            loss, var_list=[v for v in tf.global_variables() if isinstance(v, tf.Variable)][1:]
        )
        for v in tf.global_variables():
            record(v.name, v.op.type, v.dtype == tf.float32, v.dtype == tf.as_dtype("float32_ref"))
            record(repr(v), v.dtype.name, v.dtype.base_dtype.name, bool(v), str(v.shape))
            record(v.initializer.type, [t.name for t in v.initializer.inputs], v.value().name)
            record(type(v).__name__, isinstance(v, tf.Variable), v.initial_value.name)
        graph = tf.get_default_graph()
        record([op.name for op in graph.get_operations() if op.type == "VariableV2"])
        record([op.type for op in graph.get_operations() if op.type.startswith("Apply")])
        for name in ("w:0", "w/read:0", "w/Assign:0", "w/Adam:0"):
            tensor = graph.get_tensor_by_name(name)
            record(tensor.name, tensor.dtype.name, tensor.op.type)
        return loss, train

    _train(model_dir, record, model)


def a_variable_whose_shape_grows(model_dir, record):
    def model(x, y):
        rows = tf.get_variable(
            "rows", initializer=tf.zeros([1, 4]), trainable=False, validate_shape=False
        )
        loss = _loss(_net(x, "w"), y)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        longer = tf.concat([rows, x[:1]], 0)
        with tf.control_dependencies([longer]):
            grown = tf.assign(rows, longer, validate_shape=False)
        with tf.control_dependencies([grown]):
            tf.shape(rows.read_value(), name="size")
        return loss, tf.group(train, grown)

    _train(model_dir, record, model, [models.Fetching(record, ["size:0"])])


def tensors_of_variables_by_name(model_dir, record):
    def model(x, y):
        hidden = _net(x, "w")
        graph = tf.get_default_graph()
        of_ref, of_read = (graph.get_tensor_by_name(name) for name in ("w:0", "w/read:0"))
        loss = _loss(hidden, y) + 0.1 * tf.nn.l2_loss(of_read) + 0.1 * tf.reduce_sum(of_ref**2)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        return loss, optimizer.minimize(loss * (1.0 + late_zero()))

    hook = models.Fetching(record, ["w:0", "w/read:0"])
    _train(model_dir, record, model, [hook])


def an_assignment_that_is_logged(model_dir, record):
    kept = []

    def model(x, y):
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        kept[:] = [tf.assign_add(total, 2.0)]
        loss = _loss(_net(x, "w"), y)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train = optimizer.minimize(loss, var_list=tf.trainable_variables("w"))
        hook = tf.train.LoggingTensorHook({"total": kept[0]}, every_n_iter=2)
        return loss, tf.group(train, kept[0]), [hook]

    _train(model_dir, record, model)


def fetched_reads_between_writes(model_dir, record):
    """The original's fetches share the variable's memory: they show the last write of the step."""
    kept = {}

    def model(x, y):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), trainable=False)
        with tf.control_dependencies([tf.assign_add(v, 1.0)]):
            kept["read"] = v.read_value()
        with tf.control_dependencies([kept["read"]]):
            last = tf.assign_add(v, 10.0)
        with tf.control_dependencies([last]):
            kept["used after the write"] = kept["read"] + 0.0
        loss = _loss(_net(x, "w"), y)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train = optimizer.minimize(loss, var_list=tf.trainable_variables("w"))
        used = kept["used after the write"]
        return loss, tf.group(train, used), [models.Fetching(record, dict(kept))]

    _train(model_dir, record, model)


def taken_parts_between_writes(model_dir, record):
    """Some share the variable's memory, and some are copies."""
    kept = {}

    def model(x, y):
        ones = tf.ones_initializer()
        v = tf.get_variable("v", [4, 16], initializer=ones, trainable=False)
        read = v.read_value()
        parts = {
            "reshaped": tf.reshape(read, [-1]),
            "row": read[1],
            "rows": tf.split(read, 2)[1],
            "columns": read[:, :2],
            "sum": tf.reduce_sum(read, 0),
        }
        with tf.control_dependencies(list(parts.values())):
            written = tf.assign_add(v, tf.ones_like(v))
        with tf.control_dependencies([written]):
            kept.update({name: tf.reduce_max(part * 1.0) for name, part in parts.items()})
        loss = _loss(_net(x, "w"), y)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train = optimizer.minimize(loss, var_list=tf.trainable_variables("w"))
        return loss, tf.group(train, *kept.values()), [models.Fetching(record, dict(kept))]

    _train(model_dir, record, model)


def a_variable_that_a_hook_feeds(model_dir, record):
    class Feeding(tf.train.SessionRunHook):
        def begin(self):
            [w] = tf.global_variables("w")
            self.fed, self.seen = w, tf.get_default_graph().get_tensor_by_name("loss:0")

        def after_run(self, run_context, run_values):
            session = run_context.session
            value = np.zeros([4, 4], "f4")
            record(session.run(self.seen, {self.fed: value}))
            record(session.run([self.fed, "w/read:0"], {self.fed: value}))

    def model(x, y):
        loss = tf.identity(_loss(_net(x, "w"), y), "loss")
        return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    _train(model_dir, record, model, [Feeding()])


def parts_of_a_variable(model_dir, record):
    def model(x, y):
        with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(2)):
            weight = tf.get_variable("w", [4, 4], initializer=tf.constant_initializer(0.2))
        loss = _loss(tf.tanh(tf.matmul(x, weight)), y)
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([train]):
            clipped = [v.assign(tf.clip_by_value(v, -0.3, 0.3)) for v in tf.trainable_variables()]
        record([(v.name, v.op.type, str(v.shape)) for v in tf.global_variables()])
        return loss, tf.group(*clipped)

    _train(model_dir, record, model)


def the_kind_that_is_asked_for(model_dir, record):
    """By an argument and by a scope; Keras has its own."""

    def model(x, y):
        with tf.variable_scope("scope", use_resource=True):
            one = tf.get_variable("one", [], initializer=tf.ones_initializer())
        two = tf.get_variable("two", [], initializer=tf.ones_initializer(), use_resource=True)
        three = tf.Variable(1.0, name="three", use_resource=False)
        four = tf.Variable(1.0, name="four")
        loss = _loss(_net(x, "w"), y) + one + two + three + four
        record([(v.name, v.op.type) for v in tf.global_variables()])
        with tf.control_dependencies([loss]):
            return loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss)

    _train(model_dir, record, model)


def variables_that_nobody_initializes(model_dir, record):
    """Those of an own collection, which no ready op knows: reads fail, first writes do not."""

    def fails(model):
        try:
            _train(f"{model_dir}/{model.__name__}", record, model)
        except tf.errors.FailedPreconditionError as error:
            record([line for line in str(error).splitlines() if "uninitialized" in line])

    def unknown(name):
        ones = tf.ones_initializer()
        return tf.get_variable(name, [], initializer=ones, collections=["mine"], trainable=False)

    def read(x, y):
        return _loss(_net(x, "w"), y) * unknown("read"), tf.no_op()

    def counted(x, y):
        return _loss(_net(x, "w"), y), tf.assign_add(unknown("counted"), 1.0)

    def in_a_loop(x, y):
        variable = unknown("in_a_loop")
        _, loss = tf.while_loop(
            lambda i, _: i < 2,
            lambda i, loss: (i + 1, loss * variable),
            [0, _loss(_net(x, "w"), y)],
        )
        return loss, tf.no_op()

    def fetched(x, y):
        variable, loss = unknown("fetched"), _loss(_net(x, "w"), y)
        logged = tf.train.LoggingTensorHook({"twice": variable * 2}, every_n_iter=1)
        return loss, tf.no_op(), [logged]

    def in_a_branch_not_taken(x, y):
        variable, loss = unknown("in_a_branch"), _loss(_net(x, "w"), y)
        return tf.cond(loss < 0, variable.read_value, lambda: loss), tf.no_op()

    def accumulated(x, y):
        variable, loss = unknown("accumulated"), _loss(_net(x, "w"), y)
        total = tf.cond(
            tf.is_variable_initialized(variable),
            lambda: tf.identity(tf.assign_add(variable, loss)),
            lambda: tf.identity(tf.assign(variable, loss)),
        )
        return total, tf.no_op()

    for model in (read, counted, in_a_loop, fetched, in_a_branch_not_taken, accumulated):
        fails(model)
