import collections
import os

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _described(value):
    if isinstance(value, dict):
        return {str(k): _described(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *[_described(v) for v in value]]
    if isinstance(value, (tf.SparseTensor, tf.RaggedTensor)):
        return [type(value).__name__, value.dtype.name, str(value.shape)]
    if isinstance(value, tf.Tensor):
        return [value.dtype.name, str(value.shape)]
    return type(value).__name__


def _through(model_dir, record, input_fn, modes=("train", "eval", "infer")):
    def model_fn(features, labels, mode):
        record(mode, _described(features), _described(labels))
        leaves = [t for t in tf.nest.flatten([features, labels]) if isinstance(t, tf.Tensor)]
        leaves = [tf.cast(t, tf.float32) for t in leaves if t.dtype != tf.string]
        total = tf.add_n([tf.reduce_sum(t) for t in leaves]) if leaves else tf.constant(1.0)
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predictions={"total": tf.stack([total])})
        loss = models.weight() + total
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    estimator = models.estimator(model_dir, model_fn)
    if "train" in modes:
        estimator.train(input_fn, steps=2)
    if "eval" in modes:
        record(estimator.evaluate(input_fn, steps=2))
    if "infer" in modes:
        predictions = estimator.predict(input_fn)
        record([next(predictions)])
        predictions.close()


Pair = collections.namedtuple("Pair", ["first", "second"])
TYPES = ("float16", "float64", "int8", "uint8", "int32", "bool")
ELEMENTS = {
    "tensor": lambda: tf.ones([2, 3]),
    "pair": lambda: (tf.ones([2]), tf.ones([2], tf.int64)),
    "dicts": lambda: (
        {"a": tf.ones([2]), "b": tf.ones([2, 1])},
        {"l": tf.ones([2]), "m": tf.ones([2])},
    ),
    "without_labels": lambda: {"a": tf.ones([2])},
    "nested": lambda: (
        {"a": {"b": tf.ones([2]), "c": (tf.ones([1]), tf.ones([2]))}},
        tf.ones([2]),
    ),
    "three": lambda: (tf.ones([2]), tf.ones([2]), tf.ones([2])),
    "named_tuple": lambda: (Pair(tf.ones([2]), tf.ones([3])), tf.ones([2])),
}
ODD_ELEMENTS = {
    "sparse": lambda: {
        "s": tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3]),
        "d": tf.ones([2]),
    },
    "ragged": lambda: {"r": tf.ragged.constant([[1.0, 2.0], [3.0]]), "d": tf.ones([2])},
    "strings": lambda: {"s": tf.constant(["a", "b"])},
    "many_types": lambda: {name: tf.cast(tf.ones([2]), name) for name in TYPES},
    "keys_that_are_no_strings": lambda: {1: tf.ones([2]), 0: tf.ones([3])},
}
RETURNED = {
    "pair": lambda: ({"a": tf.ones([2])}, tf.ones([2])),
    "without_labels": lambda: tf.ones([2, 2]),
    "list_of_two": lambda: [{"a": tf.ones([2])}, tf.ones([2])],
    "no_features": lambda: ({}, None),
    "an_empty_dict": lambda: {},
    "labels_only": lambda: (None, tf.ones([2])),
}


def elements_of_datasets(model_dir, record):
    for name, make in ELEMENTS.items():
        dataset_of = models.endless(make)
        models.attempt(record, _through, f"{model_dir}_{name}", record, dataset_of)


def odd_elements_of_datasets(model_dir, record):
    for name, make in ODD_ELEMENTS.items():
        dataset_of = models.endless(lambda make=make: (make(), tf.ones([2])))
        models.attempt(record, _through, f"{model_dir}_{name}", record, dataset_of)


def tensors(model_dir, record):
    """input_fn may return tensors, which are computed anew in each step."""
    for name, make in RETURNED.items():
        models.attempt(record, _through, f"{model_dir}_{name}", record, make)


def unknown_shapes(model_dir, record):
    def input_fn():
        def generator():
            while True:
                yield np.ones([2, 3], np.float32), np.ones([2], np.float32)

        return tf.data.Dataset.from_generator(
            generator, (tf.float32, tf.float32), ([None, 3], None)
        )

    _through(model_dir, record, input_fn)


def random_tensors(model_dir, record):
    def input_fn():
        return {"a": tf.random.uniform([2])}, tf.ones([2])

    _through(model_dir, record, input_fn, modes=("train", "eval"))


def a_one_shot_iterator(model_dir, record):
    def input_fn():
        return tf.data.make_one_shot_iterator(models.batches()()).get_next()

    _through(model_dir, record, input_fn)


def an_initializable_iterator(model_dir, record):
    """Its initializer in TABLE_INITIALIZERS runs with the session's start."""

    def input_fn():
        iterator = tf.data.make_initializable_iterator(models.batches()())
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    _through(model_dir, record, input_fn)


class _Initializing(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        session.run(self.initializer, feed_dict=self.data)


def an_iterator_that_a_hook_initializes(model_dir, record):
    """The data are fed to placeholders of input_fn, so that no graph holds them."""
    hook = _Initializing()

    def input_fn():
        x, y = tf.placeholder(tf.float32, [6]), tf.placeholder(tf.float32, [6])
        dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(4)
        iterator = tf.data.make_initializable_iterator(dataset)
        hook.initializer = iterator.initializer
        hook.data = {x: np.arange(6), y: np.ones(6)}
        return iterator.get_next()

    estimator = models.estimator(model_dir)
    estimator.train(input_fn, hooks=[hook])
    record(estimator.evaluate(input_fn, hooks=[hook]))
    record(list(estimator.predict(input_fn, hooks=[hook])))


def nothing(model_dir, record):
    _through(model_dir, record, lambda: None, modes=("train",))
    _through(model_dir + "_pair", record, lambda: (None, None), modes=("train",))


def arrays_of_numpy(model_dir, record):
    """Arrays instead of tensors: a sum of them is what it is."""

    def model_fn(features, labels, mode):
        loss = models.weight() + tf.reduce_sum(features["a"]) + tf.reduce_sum(labels)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    def input_fn():
        return {"a": np.ones([2], np.float32)}, np.ones([2], np.float32)

    models.estimator(model_dir, model_fn).train(input_fn, steps=2)


def input_fn_is_not_callable(model_dir, record):
    models.estimator(model_dir).train([1, 2], steps=1)


def input_fn_is_a_dataset(model_dir, record):
    models.estimator(model_dir).train(models.batches()(), steps=1)


def input_fn_that_fails(model_dir, record):
    def input_fn():
        raise KeyError("missing column")

    models.estimator(model_dir).train(input_fn, steps=1)


def numpy_input_fn(model_dir, record):
    x, y = {"x": np.arange(5, dtype=np.float32)}, np.arange(5, dtype=np.float32)

    input_fn = tf.estimator.inputs.numpy_input_fn(x, y, 2, num_epochs=2, shuffle=False)
    predictions = models.estimator(
        model_dir,
        lambda features, labels, mode: tf.estimator.EstimatorSpec(mode, predictions=features["x"]),
    ).predict(input_fn, yield_single_examples=False)
    return [p.tolist() for p in predictions]


def input_context(model_dir, record):
    def input_fn(input_context=None):
        record(type(input_context).__name__)
        return models.batches()()

    models.estimator(model_dir).train(input_fn, steps=1)


def input_fn_in_a_graph(model_dir, record):
    def input_fn():
        graph = tf.get_default_graph()
        record(tf.executing_eagerly(), graph.seed, tf.constant(1).device)
        return models.batches()()

    models.estimator(model_dir, tf_random_seed=3).train(input_fn, steps=1)


def data_ends_within_py_func(model_dir, record):
    def input_fn():
        def generator():
            for i in range(3):
                yield {"x": np.full([2], i / 4, np.float32)}, np.full([2], i / 2, np.float32)

        types, shapes = ({"x": tf.float32}, tf.float32), ({"x": [2]}, [2])
        return tf.data.Dataset.from_generator(generator, types, shapes)

    estimator = models.estimator(model_dir)
    estimator.train(input_fn)
    record(estimator.evaluate(input_fn))
    return len(list(estimator.predict(input_fn)))


def the_last_batch_is_smaller(model_dir, record):
    """A remainder counts as a batch in the mean of losses."""

    def input_fn():
        x = np.arange(1, 4, dtype=np.float32)
        return tf.data.Dataset.from_tensor_slices(({"x": x}, 2 * x)).batch(2)

    estimator = models.estimator(model_dir)
    record(estimator.evaluate(input_fn))
    estimator.train(input_fn)


def input_that_nobody_reads(model_dir, record):
    def model_fn(features, labels, mode):
        loss = tf.square(models.weight() - 1.0)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    models.estimator(model_dir, model_fn).train(models.batches(1), steps=3)


def hash_table_in_the_input_fn(model_dir, record):
    def input_fn():
        initializer = tf.lookup.KeyValueTensorInitializer([0, 1], [0.5, 1.5], tf.int64)
        table = tf.lookup.StaticHashTable(initializer, -1.0)
        return tf.data.Dataset.range(3).map(table.lookup).batch(1)

    def model_fn(features, labels, mode):
        return tf.estimator.EstimatorSpec(mode, predictions=features)

    return list(models.estimator(model_dir, model_fn).predict(input_fn))


def keys_that_cannot_be_sorted(model_dir, record):
    def input_fn():
        return {"a": tf.ones([2]), 1: tf.ones([2, 3])}, tf.zeros([2])

    def model_fn(features, labels, mode):
        record(mode, _described(features))
        loss = models.weight() + tf.reduce_sum(features["a"]) + tf.reduce_sum(features[1])
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    estimator = models.estimator(model_dir, model_fn)
    estimator.train(input_fn, steps=2)
    record(estimator.evaluate(input_fn, steps=2))


def _queues(model_dir, epochs):
    path = os.path.join(model_dir, "lines.csv")
    with open(path, "w") as file:
        file.writelines(f"{i / 10},{i / 5}\n" for i in range(1, 11))

    def input_fn():
        names = tf.train.string_input_producer([path], num_epochs=epochs, shuffle=False)
        _, line = tf.TextLineReader().read(names)
        x, y = tf.decode_csv(line, [[0.0], [0.0]])
        x, y = tf.train.batch([x, y], 4, allow_smaller_final_batch=epochs is not None)
        return {"x": x}, y

    return input_fn


def queues_of_files(model_dir, record):
    estimator = models.trained(model_dir, 1)
    estimator.train(_queues(model_dir, epochs=2))  # five batches
    record(estimator.get_variable_value("global_step"))
    record(estimator.evaluate(_queues(model_dir, epochs=1)))  # three, the last a smaller one
    record(len(list(estimator.predict(_queues(model_dir, epochs=1)))))


def queues_of_files_for_tpu(model_dir, record):
    queues = _queues(model_dir, epochs=None)
    estimator = models.tpu_estimator(model_dir)
    estimator.train(lambda params: queues(), max_steps=3)
    record(estimator.evaluate(lambda params: queues(), steps=2))


def _summarizes(name):
    """A hook that summarizes the mean of a tensor that it knows by name, and reads it in a step."""

    class Summarizes(tf.train.SessionRunHook):
        def begin(self):
            self.tensor = tf.get_default_graph().get_tensor_by_name(name)
            tf.summary.scalar("named", tf.reduce_mean(self.tensor))

    return Summarizes()


def tensors_of_a_dataset_by_name(model_dir, record):
    """The iterator of a dataset is of the graph of model_fn, by the name that an iterator has."""
    estimator = models.estimator(model_dir, save_summary_steps=1)
    for name in ("IteratorGetNext:0", "IteratorGetNext:1"):
        estimator.train(models.batches(), hooks=[_summarizes(name)], steps=2)
        estimator.evaluate(models.batches(), hooks=[_summarizes(name)], steps=2)


def tensors_of_an_input_fn_by_name(model_dir, record):
    """So is all that an input_fn makes that returns tensors."""

    def input_fn():
        with tf.name_scope("training_data"):
            return models.batches()().make_one_shot_iterator().get_next()

    hook = _summarizes("training_data/IteratorGetNext:1")
    models.estimator(model_dir, save_summary_steps=1).train(input_fn, hooks=[hook], steps=2)
    hook = _summarizes("batch:0")
    estimator = models.estimator(model_dir, save_summary_steps=1)
    estimator.train(_queues(model_dir, epochs=None), hooks=[hook], steps=2)
