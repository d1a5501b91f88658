"""Reports about input functions and datasets."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _told(est, record, input_fn, **more):
    """What training says to an input function; of an error its type and first words."""
    try:
        est.train(input_fn, steps=1, **more)
        record("trained", est.get_variable_value("w"))
    except Exception as error:
        words = str(error).splitlines()[0].partition(" was created in. ")
        record(type(error).__name__, (words[2] or words[0])[:40])


def a_dataset_of_outside(model_dir, record):
    """After tensorflow#23515, #27872: a dataset is made before the input_fn."""
    data = models.batches()()
    _told(models.estimator(f"{model_dir}/one"), record, lambda: data)
    _told(models.estimator(f"{model_dir}/two"), record, lambda: data.map(lambda x, y: (x, y)))


def tensors_of_outside(model_dir, record):
    """After tensorflow#4026, #8042: tensors of another graph are returned, or used in the model."""
    x, y = tf.constant([1.0, 2.0]), tf.constant([2.0, 4.0])
    _told(models.estimator(f"{model_dir}/one"), record, lambda: ({"x": x}, y))
    _told(
        models.estimator(f"{model_dir}/two"),
        record,
        lambda: tf.data.Dataset.from_tensors(({"x": x}, y)).repeat(),
    )

    def model_fn(features, labels, mode):
        return models.model_fn({"x": features["x"] * x}, labels, mode)

    _told(models.estimator(f"{model_dir}/three", model_fn), record, models.batches())


def a_dict_of_labels_of_arrays(model_dir, record):
    """After tensorflow#12610: numpy_input_fn with labels that are a dict, and what it refuses."""
    x = {"x": np.arange(4, dtype=np.float32)}

    def model_fn(features, labels, mode):
        record(sorted(labels), sorted(features))
        return models.model_fn(features, labels["far"] - labels["near"], mode)

    labels = {"near": np.ones(4, np.float32), "far": np.full(4, 3.0, np.float32)}
    for y in (labels, {**labels, "x": labels["near"]}, {}, {"near": labels["near"][:2]}, [1.0]):
        try:
            input_fn = tf.estimator.inputs.numpy_input_fn(
                x, y, batch_size=2, shuffle=False, num_epochs=None
            )
        except Exception as error:
            record(error)
            continue
        est = models.estimator(f"{model_dir}/{len(y)}", model_fn, save_summary_steps=None)
        _told(est, record, input_fn)


def a_generator_of_dicts(model_dir, record):
    """After tensorflow#14145, #10597: a Python generator of dicts, which fails in the middle."""

    def examples(last, fails):
        for i in range(last):
            if fails and i == 2:
                raise KeyError("no such image")
            yield {"x": np.float32(i), "name": str(i)}, 2.0 * i

    def input_fn(last=4, fails=False):
        types = {"x": tf.float32, "name": tf.string}, tf.float32
        data = tf.data.Dataset.from_generator(
            lambda: examples(last, fails), types, ({"x": [], "name": []}, [])
        )
        return data.batch(1)

    est = models.estimator(model_dir, save_checkpoints_steps=1)
    est.train(input_fn)
    record(est.evaluate(input_fn))
    try:
        est.train(lambda: input_fn(fails=True))
    except tf.errors.OpError as error:
        record(type(error).__name__, "no such image" in str(error))
    record(est.latest_checkpoint())


def an_iterator_that_nobody_initializes(model_dir, record):
    """After models#4984, tensorflow#15006: GetNext() failed, iterator not initialized."""
    for collection in (None, tf.GraphKeys.TABLE_INITIALIZERS, tf.GraphKeys.LOCAL_INIT_OP):

        def input_fn(collection=collection):
            iterator = tf.data.make_initializable_iterator(models.batches()())
            if collection:
                tf.add_to_collection(collection, iterator.initializer)
            return iterator.get_next()

        try:
            models.estimator(f"{model_dir}/{collection}").train(input_fn, steps=1)
            record(collection, "trained")
        except Exception as error:
            record(collection, type(error).__name__, "initialized" in str(error))


def a_table_in_a_dataset(model_dir, record):
    """After ranking#102, training-data-analyst#386: a table in a map, not initialized."""

    def table():
        keys, values = tf.constant(["a", "b"]), tf.constant([1.0, 2.0])
        initializer = tf.lookup.KeyValueTensorInitializer(keys, values)
        return tf.lookup.StaticHashTable(initializer, 5.0)

    def by_iterator():
        words = table()
        data = tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).repeat()
        data = data.map(lambda word: ({"x": words.lookup(word)}, words.lookup(word) * 2.0))
        iterator = tf.data.make_initializable_iterator(data.batch(3))
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    def as_dataset():
        words = table()
        data = tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).repeat()
        return data.map(lambda word: ({"x": words.lookup(word)}, words.lookup(word))).batch(3)

    for name, input_fn in (("dataset", as_dataset), ("iterator", by_iterator)):
        est = models.estimator(f"{model_dir}/{name}")
        models.attempt(record, est.train, input_fn, steps=2)
        models.attempt(record, est.evaluate, input_fn, steps=1)


def what_an_input_fn_returns(model_dir, record):
    """After tensorflow#22250, #17356: lists, tuples of three, nests and labels alone."""

    def model_fn(features, labels, mode):
        told = tf.nest.map_structure(lambda each: each.shape.as_list(), (features, labels))
        record(type(features).__name__, type(labels).__name__, told)
        x = tf.nest.flatten(features)[0]
        return models.model_fn({"x": x}, 2.0 * x if labels is None else 1.0, mode)

    x, y = np.array([1.0, 2.0], np.float32), np.array([2.0, 4.0], np.float32)
    for made in (
        [x, y],
        (x,),
        (x, y, y),
        ((x, y), {"one": y, "two": [x]}),
        {"x": x, "labels": y},
        ({"x": x}, None),
    ):
        est = models.estimator(f"{model_dir}/{len(str(made))}", model_fn)
        for input_fn in (
            lambda made=made: tf.data.Dataset.from_tensors(made).repeat(),
            lambda made=made: tf.nest.map_structure(tf.constant, made),
        ):
            models.attempt(record, est.train, input_fn, steps=1)


def sparse_features(model_dir, record):
    """After tensorflow#12033: features are SparseTensors from a dataset, and from tensors."""

    def made():
        text = tf.constant(["a b", "b c c"])
        words = tf.string_split(text)
        ids = tf.SparseTensor(words.indices, tf.strings.length(words.values), words.dense_shape)
        return {"words": words, "ids": ids, "x": tf.constant([1.0, 2.0])}, tf.constant([2.0, 4.0])

    def model_fn(features, labels, mode):
        record({key: type(value).__name__ for key, value in features.items()})
        counts = tf.sparse.reduce_sum(features["ids"], 1)
        predictions = {"n": counts, "words": tf.sparse.to_dense(features["words"], "")}
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predictions=predictions)
        return models.model_fn(features, labels, mode)

    est = models.estimator(model_dir, model_fn)
    for input_fn in (made, lambda: tf.data.Dataset.from_tensors(made()).repeat(3)):
        est.train(input_fn, steps=1)
        record(next(est.predict(input_fn)))
