"""Inputs of a program: ten examples of four numbers, which come to the model in many ways."""

import numpy as np
import tensorflow.compat.v1 as tf

EXAMPLES = 10
WIDTH = 4


def examples():
    x = np.random.RandomState(7).uniform(-1, 1, (EXAMPLES, WIDTH)).astype(np.float32)
    return x, np.dot(x, np.float32([[1.0], [-2.0], [3.0], [0.5]])) / 2


class Input:
    def __init__(self, choices, batch=None):
        self.choices = choices
        self.batch = batch or int(choices["batch"])
        self.hooks = []
        self.made = None
        if choices["input"] in ("placeholders", "placeholders_with_default"):
            self.hooks = [Feeding(self)]
        if choices["input"] == "initialized_by_hook":
            self.hooks = [Initializing(self)]

    @property
    def endless(self):
        return self.choices["length"] == "endless"

    def input_fn(self):
        self._make_aside()
        kind = self.choices["input"]
        if kind == "numpy":
            return self._numpy()
        if kind in DATASETS:
            data = self._ended(DATASETS[kind](self))
            return data.map(lambda x, y: (self._features(x), y))
        x, y = OTHERS[kind](self)
        return ({}, None) if x is None else (self._features(x), y)

    def input_fn_of_params(self, params):
        assert params["batch_size"] == self.batch
        return self.input_fn()

    def _make_aside(self):
        aside = self.choices["aside"]
        if aside == "loss":
            tf.losses.add_loss(tf.reduce_mean(tf.constant([0.5, 1.0])))
        elif aside == "summary":
            tf.summary.scalar("of_the_input", tf.constant(2.0) * 3.0)
        elif aside == "table":
            initializer = tf.lookup.KeyValueTensorInitializer(
                tf.constant(["a", "b"]), tf.constant([0.5, 2.0])
            )
            table = tf.lookup.StaticHashTable(initializer, -1.0)
            tf.add_to_collection("aside", table.lookup(tf.constant(["b", "c"])))
        elif aside == "variable":
            self._variable_aside()
        elif aside == "collection":
            tf.add_to_collection("aside", tf.constant([1.0, 2.0]))

    def _variable_aside(self):
        value = tf.get_variable(
            "aside", [2], initializer=tf.constant_initializer(0.25), trainable=False
        )
        tf.add_to_collection("aside", value * 2.0)

    def _ended(self, data):
        if self.endless:
            data = data.repeat()
        data = data.batch(self.batch, drop_remainder=self.choices["length"] == "finite")
        if self.choices["input"] not in ("step_in_map", "variable_in_map"):
            return data
        options = tf.data.Options()  # else elements are made ahead, of values of then
        options.autotune.enabled = False
        options.experimental_optimization.apply_default_optimizations = False
        return data.with_options(options)

    def _features(self, x):
        kind = self.choices["features"]
        if kind == "dict":
            return {"x": x}
        if kind == "named":
            return {"other": tf.reduce_sum(x, -1), "x": x, "a_last": {"deep": x * 2.0}}
        return (x, x + 1.0) if kind == "tuple" else x

    def _numpy(self):
        x, y = examples()
        return tf.estimator.inputs.numpy_input_fn(
            {"x": x}, y, self.batch, None if self.endless else 1, shuffle=False
        )()

    def batch_of(self, turn):
        """Arrays of a turn, for a feed."""
        x, y = examples()
        rows = [(turn * self.batch + i) % EXAMPLES for i in range(self.batch)]
        return x[rows], y[rows]


class Feeding(tf.train.SessionRunHook):
    def __init__(self, given):
        self.given, self.turn = given, 0

    def before_run(self, run_context):
        self.turn += 1
        feed = dict(zip(self.given.made, self.given.batch_of(self.turn), strict=True))
        return tf.train.SessionRunArgs(None, feed)


class Initializing(tf.train.SessionRunHook):
    def __init__(self, given):
        self.given = given

    def after_create_session(self, session, coord):
        iterator, *places = self.given.made
        session.run(iterator.initializer, dict(zip(places, examples(), strict=True)))


def _dataset(given):
    return tf.data.Dataset.from_tensor_slices(examples())


def _shuffled(given):
    return _dataset(given).shuffle(EXAMPLES, seed=5)


def _generator(given):
    def pairs():
        yield from zip(*examples(), strict=True)

    shapes = (tf.TensorShape([WIDTH]), tf.TensorShape([1]))
    return tf.data.Dataset.from_generator(pairs, (tf.float32, tf.float32), shapes)


def _step_in_map(given):
    step = tf.train.get_or_create_global_step()
    return _dataset(given).map(lambda x, y: (x * (1.0 + 0.1 * tf.cast(step, tf.float32)), y))


def _variable_in_map(given):
    scale = tf.get_variable("scale", [], initializer=tf.ones_initializer(), trainable=False)
    return _dataset(given).map(lambda x, y: (x * scale, y))


def _py_func_in_map(given):
    def mapped(x, y):
        x = tf.py_func(lambda x: np.float32(2.0) * x, [x], tf.float32)
        x.set_shape([WIDTH])
        return x, y

    return _dataset(given).map(mapped)


def _text(given):
    x, y = examples()
    lines = [",".join(str(v) for v in [*row, label[0]]) for row, label in zip(x, y, strict=True)]

    def parsed(line):
        columns = tf.io.decode_csv(line, [[0.0]] * (WIDTH + 1))
        return tf.stack(columns[:WIDTH]), tf.stack(columns[WIDTH:])

    return tf.data.Dataset.from_tensor_slices(lines).map(parsed)


def _interleaved(given):
    x, y = examples()

    def two(i):
        part = tf.data.Dataset.from_tensor_slices((x, y)).skip(i * 5)
        return part.take(5)

    return tf.data.Dataset.range(2).interleave(two, cycle_length=2, block_length=2)


def _zipped(given):
    x, y = (tf.data.Dataset.from_tensor_slices(each) for each in examples())
    return tf.data.Dataset.zip((x, y)).filter(lambda x, y: x[0] > -0.5).cache().prefetch(1)


def _one_shot(given):
    return tf.data.make_one_shot_iterator(given._ended(_shuffled(given))).get_next()


def _initializable(given):
    iterator = tf.data.make_initializable_iterator(given._ended(_dataset(given)))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def _initialized_by_hook(given):
    x, y = (tf.placeholder(tf.float32, [EXAMPLES, each]) for each in (WIDTH, 1))
    data = given._ended(tf.data.Dataset.from_tensor_slices((x, y)))
    iterator = tf.data.make_initializable_iterator(data)
    given.made = iterator, x, y
    return iterator.get_next()


def _constants(given):
    x, y = given.batch_of(0)
    return tf.constant(x), tf.constant(y)


def _random_tensors(given):
    x = tf.random.uniform([given.batch, WIDTH], -1.0, 1.0, seed=11)
    return x, tf.reduce_sum(x, 1, keepdims=True)


def _py_func(given):
    turns = iter(range(1000))
    x, y = tf.py_func(lambda: given.batch_of(next(turns)), [], [tf.float32, tf.float32])
    x.set_shape([given.batch, WIDTH])
    y.set_shape([given.batch, 1])
    return x, y


def _train_batch(given):
    turns = iter(range(1000))

    def one():
        turn = next(turns)
        if not given.endless and turn >= EXAMPLES:
            raise StopIteration
        x, y = examples()
        return x[turn % EXAMPLES], y[turn % EXAMPLES]

    x, y = tf.py_func(one, [], [tf.float32, tf.float32])
    x.set_shape([WIDTH])
    y.set_shape([1])
    return tf.train.batch([x, y], given.batch, num_threads=1)


def _string_producer(given):
    x, y = examples()
    lines = [" ".join(str(v) for v in [*row, *label]) for row, label in zip(x, y, strict=True)]
    epochs = None if given.endless else 1
    line = tf.train.string_input_producer(lines, num_epochs=epochs, shuffle=False).dequeue()
    values = tf.string_to_number(tf.string_split([line]).values)
    values.set_shape([WIDTH + 1])
    return tf.train.batch([values[:WIDTH], values[WIDTH:]], given.batch)


def _slice_producer(given):
    epochs = None if given.endless else 1
    pair = tf.train.slice_input_producer(list(examples()), num_epochs=epochs, shuffle=False)
    return tf.train.batch(pair, given.batch)


def _range_producer(given):
    epochs = None if given.endless else 1
    i = tf.train.range_input_producer(EXAMPLES, num_epochs=epochs, shuffle=False).dequeue()
    x, y = (tf.gather(tf.constant(each), i) for each in examples())
    return tf.train.batch([x, y], given.batch)


def _placeholders(given):
    given.made = [tf.placeholder(tf.float32, [None, each]) for each in (WIDTH, 1)]
    return given.made


def _placeholders_with_default(given):
    x, y = given.batch_of(1)
    given.made = [
        tf.placeholder_with_default(each, [None, width]) for each, width in ((x, WIDTH), (y, 1))
    ]
    return given.made


def _counted(given):
    """A variable of the input is its position."""
    position = tf.get_variable(
        "position", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False
    )
    at = tf.identity(position.assign_add(1))
    rows = (at + tf.range(given.batch, dtype=tf.int64)) % EXAMPLES
    x, y = (tf.gather(tf.constant(each), rows) for each in examples())
    return x, y


def _nothing(given):
    return None, None


DATASETS = {
    "dataset": _dataset,
    "shuffled": _shuffled,
    "generator": _generator,
    "step_in_map": _step_in_map,
    "variable_in_map": _variable_in_map,
    "py_func_in_map": _py_func_in_map,
    "text": _text,
    "interleaved": _interleaved,
    "zipped": _zipped,
}
OTHERS = {
    "one_shot": _one_shot,
    "initializable": _initializable,
    "initialized_by_hook": _initialized_by_hook,
    "constants": _constants,
    "random_tensors": _random_tensors,
    "py_func": _py_func,
    "train_batch": _train_batch,
    "string_producer": _string_producer,
    "slice_producer": _slice_producer,
    "range_producer": _range_producer,
    "placeholders": _placeholders,
    "placeholders_with_default": _placeholders_with_default,
    "counted": _counted,
    "nothing": _nothing,
}
