"""Effects of ops in model_fn: prints, files, variables, in branches and loops, in every mode."""

import tensorflow.compat.v1 as tf
from scenarios import models


def _with_effect(make):
    def model_fn(features, labels, mode):
        with tf.control_dependencies(make(features, mode)):
            x = tf.identity(features["x"])
        return models.model_fn({"x": x}, labels, mode)

    return model_fn


def _in_every_mode(model_dir, make):
    estimator = models.estimator(model_dir, _with_effect(make))
    estimator.train(models.batches(2))
    estimator.evaluate(models.batches(2))
    return len(list(estimator.predict(models.batches(2))))


def py_func(model_dir, record):
    return _in_every_mode(
        model_dir,
        lambda features, mode: [tf.py_func(models.noted(record, mode), [features["x"]], tf.int32)],
    )


def numpy_function_and_py_function(model_dir, record):
    def eager(x):
        record("eager", tf.executing_eagerly())
        return 1

    def make(features, mode):
        first = tf.numpy_function(models.noted(record, "numpy"), [features["x"]], tf.int32)
        with tf.control_dependencies([first]):
            return [tf.py_function(eager, [1], tf.int32)]

    return _in_every_mode(model_dir, make)


def print_to_a_file(model_dir, record):
    def make(features, mode):
        first = tf.print("first", features["x"], output_stream="file://printed.txt")
        with tf.control_dependencies([first]):
            return [tf.print("second", mode, output_stream="file://printed.txt")]

    _in_every_mode(model_dir, make)
    with open("printed.txt") as file:
        return file.read()


def print_to_standard_output(model_dir, record):
    import sys

    return _in_every_mode(
        model_dir, lambda features, mode: [tf.print(mode, features["x"], output_stream=sys.stdout)]
    )


def the_old_print(model_dir, record):
    def model_fn(features, labels, mode):
        x = tf.Print(features["x"], [features["x"]], "seen: ")
        return models.model_fn({"x": x}, labels, mode)

    estimator = models.estimator(model_dir, model_fn)
    estimator.train(models.batches(2))


def effects_in_a_branch(model_dir, record):
    def make(features, mode):
        def branch(name):
            return lambda: tf.py_func(models.noted(record, mode, name), [features["x"]], tf.int32)

        return [tf.cond(features["x"][0] > 0.2, branch("above"), branch("below"))]

    return _in_every_mode(model_dir, make)


def effects_in_a_map(model_dir, record):
    def make(features, mode):
        mapped = tf.map_fn(lambda x: x * 2, features["x"])
        added = tf.scan(lambda a, x: a + x, features["x"])
        return [tf.py_func(models.noted(record, mode), [mapped, added], tf.int32)]

    return _in_every_mode(model_dir, make)


def assertions_that_hold(model_dir, record):
    def make(features, mode):
        return [
            tf.assert_less(features["x"], 100.0),
            tf.debugging.assert_all_finite(features["x"], ""),
        ]

    return _in_every_mode(model_dir, make)


def an_assertion_that_fails(model_dir, record):
    def make(features, mode):
        return [tf.assert_less(features["x"], 0.2, message="too large")]

    estimator = models.estimator(model_dir, _with_effect(make))
    try:
        estimator.evaluate(models.batches(2))
    except Exception as error:
        return type(error).__name__, "too large" in str(error)


def an_error_in_a_py_func(model_dir, record):
    def fails(x):
        raise KeyError("no key")

    estimator = models.estimator(
        model_dir, _with_effect(lambda f, mode: [tf.py_func(fails, [f["x"]], tf.int32)])
    )
    for call in (
        lambda: estimator.train(models.batches(2)),
        lambda: estimator.evaluate(models.batches(2)),
        lambda: list(estimator.predict(models.batches(2))),
    ):
        try:
            call()
        except Exception as error:
            record(type(error).__name__, "no key" in str(error))


def ops_that_nobody_asks_for(model_dir, record):
    def make(features, mode):
        tf.py_func(models.noted(record, "unasked"), [features["x"]], tf.int32)
        tf.print("unasked", output_stream="file://unasked.txt")
        return []

    return _in_every_mode(model_dir, make)


def writing_files(model_dir, record):
    return _in_every_mode(
        model_dir,
        lambda features, mode: [tf.io.write_file(f"{mode}.txt", tf.as_string(features["x"][0]))],
    )


def a_queue_of_the_model(model_dir, record):
    def make(features, mode):
        queue = tf.FIFOQueue(4, [tf.float32], [[]])
        with tf.control_dependencies([queue.enqueue(features["x"][0])]):
            taken = queue.dequeue()
        return [tf.py_func(models.noted(record, mode), [taken], tf.int32)]

    return _in_every_mode(model_dir, make)


def a_mutable_table(model_dir, record):
    def make(features, mode):
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0)
        seen = table.lookup(tf.constant("sum"))
        with tf.control_dependencies([table.insert(tf.constant("sum"), seen + features["x"][0])]):
            return [tf.py_func(models.noted(record, mode), [seen], tf.int32)]

    return _in_every_mode(model_dir, make)


def a_case_and_a_switch(model_dir, record):
    def make(features, mode):
        x = features["x"][0]
        chosen = tf.case([(x < 0.2, lambda: 1.0), (x < 0.6, lambda: 2.0)], default=lambda: 3.0)
        index = tf.switch_case(tf.cast(x * 2, tf.int32), [lambda: 10, lambda: 20])
        return [tf.py_func(models.noted(record, mode), [chosen, index], tf.int32)]

    return _in_every_mode(model_dir, make)


def a_tf_function(model_dir, record):
    @tf.function
    def inside(x):
        tf.print("inside", x, output_stream="file://inside.txt")
        return x * 2

    _in_every_mode(model_dir, lambda features, mode: [inside(features["x"])])
    with open("inside.txt") as file:
        return file.read()


def a_tensor_array(model_dir, record):
    def make(features, mode):
        array = tf.TensorArray(tf.float32, 2).write(0, features["x"][0]).write(1, 5.0)
        return [tf.py_func(models.noted(record, mode), [array.stack()], tf.int32)]

    return _in_every_mode(model_dir, make)
