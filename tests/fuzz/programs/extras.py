"""What a program does besides learning: tables, counters, averages, host functions, summaries.

Each function takes the choices and the tensors of the forward pass, and returns operations or
tensors that the update has to wait for.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import data_flow_ops


class Forward:
    def __init__(self, x, prediction, loss, record, mode):
        self.x, self.prediction, self.loss = x, prediction, loss
        self.record, self.mode = record, mode


def all_of(choices, forward):
    found = []
    for function in FUNCTIONS:
        found += function(choices, forward)
    return found


def _table(choices, forward):
    kind = choices["table"]
    if kind == "none":
        return []
    keys = tf.cast(tf.reshape(tf.abs(forward.x[:1, :2]) * 3.0, [-1]), tf.int64)
    keys = tf.unique(keys)[0]
    if kind == "static":
        initializer = tf.lookup.KeyValueTensorInitializer(
            tf.constant([0, 1], tf.int64), tf.constant([1.5, 2.5])
        )
        return [tf.identity(tf.lookup.StaticHashTable(initializer, -1.0).lookup(keys), "seen")]
    if kind == "mutable":
        table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0, name="seen_by")
    else:
        table = tf.lookup.experimental.DenseHashTable(
            *(tf.int64, tf.float32, 0.0),
            empty_key=-1,
            deleted_key=-2,
            initial_num_buckets=8,
            name="seen_by",
        )
    before = tf.identity(table.lookup(keys), "seen")
    with tf.control_dependencies([before]):
        insert = table.insert(keys, before + 1.0)
    with tf.control_dependencies([insert]):
        return [tf.identity(table.size(), "seen_size")]


def _counter(choices, forward):
    kind = choices["counter"]
    if kind == "no":
        return []
    shape = [3] if kind == "scatter" else []
    count = tf.get_variable(
        "count", shape, tf.float32, initializer=tf.zeros_initializer(), trainable=False
    )
    with tf.control_dependencies([forward.loss]):
        return [tf.identity(COUNTERS[kind](count, forward), "counted")]


def _count_while(count, forward):
    def body(i):
        with tf.control_dependencies([tf.assign_add(count, 2.0)]):
            return i + 1

    turns = tf.while_loop(lambda i: i < 2, body, [tf.constant(0)])
    with tf.control_dependencies([turns]):
        return count.read_value()


def _count_cond(count, forward):
    return tf.cond(
        forward.loss > 0.5,
        lambda: tf.identity(tf.assign_add(count, 1.0)),
        lambda: tf.identity(tf.assign(count, 10.0)),
    )


def _count_case(count, forward):
    def added(number):
        return lambda: tf.identity(tf.assign_add(count, number))

    x = tf.reduce_mean(forward.x)
    return tf.case([(x > 0.3, added(1.0)), (x < -0.3, added(10.0))], default=added(100.0))


def _count_scatter(count, forward):
    place = tf.cast(tf.reduce_sum(tf.abs(forward.x)), tf.int32) % 3
    return tf.scatter_add(count, [place], [1.0])


COUNTERS = {
    "yes": lambda count, forward: tf.assign_add(count, 1.0),
    "while": _count_while,
    "cond": _count_cond,
    "case": _count_case,
    "scatter": _count_scatter,
}


def _average(choices, forward):
    if choices["average"] != "loss":
        return []
    averages = tf.train.ExponentialMovingAverage(0.8, zero_debias=True)
    with tf.control_dependencies([forward.loss]):
        applied = averages.apply([forward.loss])
    with tf.control_dependencies([applied]):
        return [tf.identity(averages.average(forward.loss), "averaged")]


def _host(choices, forward):
    kind = choices["host"]
    if kind == "none":
        return []

    def seen(value):
        if kind != "changes":
            forward.record("host", np.round(value, 3))
        return np.float32(value * 2)

    if kind == "numpy_function":
        return [tf.identity(tf.numpy_function(seen, [forward.loss], tf.float32), "of_host")]
    return [tf.identity(tf.py_func(seen, [forward.loss], tf.float32), "of_host")]


def _staged(choices, forward):
    """Elements in a container that a session has for itself: what is left is not seen again."""
    kind = choices["staged"]
    if kind == "none":
        return []
    total = tf.get_variable("taken", [], initializer=tf.zeros_initializer(), trainable=False)
    if kind == "accumulator":
        accumulator = tf.ConditionalAccumulator(tf.float32, [])
        with tf.control_dependencies([accumulator.apply_grad(forward.loss, 2**40)]):
            taken, more = accumulator.take_grad(1), []
    else:
        area, puts = AREAS[kind](forward.loss)
        with tf.control_dependencies(puts[:1]):
            taken = area.get()[-1]
        taken, more = taken[0] if isinstance(taken, (list, tuple)) else taken, puts[1:]
    return [tf.identity(tf.assign_add(total, taken), "taken_total"), *more]


def _area(loss):
    area = data_flow_ops.StagingArea([tf.float32], [[]])
    put = area.put([loss])
    with tf.control_dependencies([put]):
        return area, [put, area.put([loss * 2.0])]


def _map_area(loss):
    area = data_flow_ops.MapStagingArea([tf.float32], [[]], ordered=True)
    return area, [area.put(tf.cast(loss * 1e3, tf.int64), [loss], [0])]


AREAS = {"area": _area, "map": _map_area}


def _asks(choices, forward):
    if choices["asks"] == "nothing":
        return []
    context = tf.distribute.get_replica_context()
    forward.record(
        "asked",
        tf.distribute.has_strategy(),
        tf.distribute.in_cross_replica_context(),
        context.num_replicas_in_sync,
    )
    return [context.all_reduce("SUM", forward.loss)]


def host_call(choices, forward):
    """The field of a spec: a function that adds to a variable of its own."""
    kind = choices["host_call"]

    def called(*values):
        total = tf.get_variable("called", [], initializer=tf.zeros_initializer(), trainable=False)
        if kind == "captures":
            values = [forward.prediction]
        return tf.assign_add(total, tf.reduce_mean(values[0]) if values else 1.0)

    return called, [] if kind == "takes_none" else [tf.reshape(forward.loss, [1])]


def _asserts(choices, forward):
    if choices["assert"] == "no":
        return []
    return [
        tf.Assert(forward.loss < 1e6, [forward.loss], name="small"),
        tf.assert_equal(tf.shape(forward.x)[1], 4),
    ]


def _prints(choices, forward):
    if choices["print"] == "no":
        return []
    return [tf.print("rows:", tf.shape(forward.x), output_stream="file://printed.txt")]


def _random_step(choices, forward):
    """A variable that gets a drawn number in each step."""
    if choices["random_step"] == "no":
        return []
    drawn = tf.random.uniform([2], seed=41)
    walk = tf.get_variable("walk", [2], initializer=tf.ones_initializer(), trainable=False)
    with tf.control_dependencies([forward.loss]):  # which the end of the data comes before
        walked = tf.identity(tf.assign_add(walk, drawn), "walked")
    return [walked, tf.random.shuffle(tf.range(4), seed=2)]


def _summaries(choices, forward):
    if choices["summary_scalar"] == "yes":
        tf.summary.scalar("mean/prediction", tf.reduce_mean(forward.prediction))
        tf.summary.scalar("loss", forward.loss)
    if choices["summary_histogram"] == "yes":
        tf.summary.histogram("predictions", forward.prediction)
    if choices["summary_cond"] == "yes":
        made = tf.cond(
            forward.loss > 0.3,
            lambda: tf.summary.scalar("large", forward.loss, collections=[]),
            lambda: tf.constant(""),
        )
        tf.add_to_collection(tf.GraphKeys.SUMMARIES, made)
    if choices["summary_text"] == "yes":
        tf.summary.text("text", tf.as_string(tf.shape(forward.x)))
    if choices["summary_image"] == "yes":
        tf.summary.image("image", tf.reshape(forward.x[:1], [1, 2, 2, 1]))
    return []


FUNCTIONS = (
    *(_table, _counter, _average, _host, _staged, _asks),
    *(_asserts, _prints, _random_step, _summaries),
)


def after_update(choices, update):
    if choices["average"] not in ("variables", "swapped"):
        return update
    averages = tf.train.ExponentialMovingAverage(0.7, tf.train.get_global_step())
    with tf.control_dependencies([update]):
        return averages.apply(tf.trainable_variables())
