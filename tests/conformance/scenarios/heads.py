"""Heads: the original's own code here, so one scenario for each kind."""

import numpy as np
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2
from scenarios import models
from tensorflow_estimator.python.estimator.canned import head as heads_of_v1

X = np.linspace(-1.0, 1.0, 8, dtype=np.float32)
WEIGHTS = np.array([1, 2, 0.5, 1, 1, 3, 1, 0.25], np.float32)


def _input_fn(labels, batch=4):
    def input_fn():
        features = {"x": X[:, None], "weight": WEIGHTS}
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(batch).repeat(2)

    return input_fn


def _logits(features, size):
    """Logits that differ by class, of a weight for each."""
    start = tf.constant_initializer(np.linspace(-0.5, 1.5, size).reshape(1, size))
    return tf.matmul(features["x"], tf.get_variable("w", [1, size], initializer=start)) + 0.125


def _values(predictions):
    return [{str(key): value for key, value in each.items()} for each in predictions]


def _model_fn(make_head, **spec):
    def model_fn(features, labels, mode):
        head = make_head()
        logits = _logits(features, head.logits_dimension)
        return head.create_estimator_spec(
            features=features, mode=mode, logits=logits, labels=labels, **spec
        )

    return model_fn


def _through(model_dir, record, make_head, labels):
    model_fn = _model_fn(make_head, train_op_fn=models.descent)
    estimator = models.estimator(model_dir, model_fn)
    estimator.train(_input_fn(labels), steps=3)
    record(estimator.evaluate(_input_fn(labels)))
    record(_values(estimator.predict(_input_fn(labels))))
    record("w", estimator.get_variable_value("w"))
    return estimator


def _signatures(record, estimator, folder):
    def receiver():
        x = tf.placeholder(tf.float32, [None, 1], "x")
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    def serialized():
        examples = tf.placeholder(tf.string, [None], "examples")
        features = tf.parse_example(examples, {"x": tf.FixedLenFeature([1], tf.float32)})
        return tf.estimator.export.ServingInputReceiver(features, {"examples": examples})

    for kind in receiver, serialized:
        path = estimator.export_saved_model(f"{folder}/{kind.__name__}", kind)
        graph = tf.saved_model.loader.load(tf.Session(graph=tf.Graph()), ["serve"], path)
        for name, signature in sorted(graph.signature_def.items()):
            outputs = {k: (v.dtype, str(v.tensor_shape)) for k, v in signature.outputs.items()}
            record(kind.__name__, name, signature.method_name, sorted(signature.inputs), outputs)


BINARY = np.array([0, 1, 1, 0, 1, 0, 1, 1], np.int64)
CLASSES = np.array([0, 2, 1, 1, 2, 0, 2, 1], np.int64)
LABELS = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 1]] * 2, np.int64)
NUMBERS = np.linspace(0.5, 4.0, 8, dtype=np.float32)


def binary(model_dir, record):
    _through(model_dir, record, tf.estimator.BinaryClassHead, BINARY)


def multi_class_of_v1(model_dir, record):
    def make_head():
        return heads_of_v1._multi_class_head_with_softmax_cross_entropy_loss(
            3, "weight", label_vocabulary=["bird", "cat", "dog"]
        )

    estimator = _through(model_dir, record, make_head, np.array([b"bird", b"cat", b"dog"])[CLASSES])
    _signatures(record, estimator, "exports")


def multi_label_of_names(model_dir, record):
    def make_head():
        return tf.estimator.MultiLabelHead(
            3,
            label_vocabulary=["bird", "cat", "dog"],
            classes_for_class_based_metrics=["cat"],
            name="pets",
        )

    def input_fn():
        features = {"x": X[:2, None]}
        labels = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["dog", "bird", "cat"], [2, 2])
        return tf.data.Dataset.from_tensors((features, labels)).repeat(3)

    estimator = models.estimator(model_dir, _model_fn(make_head, train_op_fn=models.descent))
    estimator.train(input_fn, steps=2)
    record(estimator.evaluate(input_fn))


def regression_of_two_with_weights(model_dir, record):
    numbers = np.stack([NUMBERS, -NUMBERS], 1)
    _through(model_dir, record, lambda: tf.estimator.RegressionHead(2, "weight"), numbers)


def several_heads(model_dir, record):
    def make_head():
        heads = [
            tf.estimator.MultiClassHead(3, name="pet"),
            tf.estimator.BinaryClassHead(name="answer"),
        ]
        return tf.estimator.MultiHead(heads, head_weights=[1.0, 0.5])

    labels = {"pet": CLASSES, "answer": BINARY}
    estimator = _through(model_dir, record, make_head, labels)
    _signatures(record, estimator, "exports")


def a_keras_optimizer(model_dir, record):
    def model_fn(features, labels, mode):
        logits = _logits(features, 1)
        optimizer = tf2.keras.optimizers.legacy.SGD(0.5)
        optimizer.iterations = tf.train.get_or_create_global_step()
        return tf.estimator.RegressionHead().create_estimator_spec(
            features,
            mode,
            logits,
            labels=labels,
            optimizer=optimizer,
            trainable_variables=tf.trainable_variables(),
        )

    estimator = models.estimator(model_dir, model_fn)
    estimator.train(_input_fn(NUMBERS), steps=3)
    record(estimator.get_variable_value("w"), estimator.get_variable_names())


def an_optimizer_of_v1(model_dir, record):
    def model_fn(features, labels, mode):
        return heads_of_v1._regression_head().create_estimator_spec(
            features,
            mode,
            _logits(features, 1),
            labels=labels,
            optimizer=tf.train.AdagradOptimizer(0.5),
        )

    estimator = models.estimator(model_dir, model_fn)
    estimator.train(_input_fn(NUMBERS), steps=3)
    record(estimator.get_variable_value("w"), estimator.get_variable_names())


def eagerly(model_dir, record):
    features = {"x": X[:, None], "weight": WEIGHTS}
    for head, labels in (
        (tf.estimator.BinaryClassHead("weight", thresholds=[0.75]), BINARY),
        (tf.estimator.MultiClassHead(3), CLASSES),
        (tf.estimator.MultiLabelHead(3), LABELS),
        (tf.estimator.RegressionHead(1, "weight"), NUMBERS),
    ):
        logits = X[:, None] * np.linspace(-0.5, 1.5, head.logits_dimension, dtype=np.float32)
        record(float(head.loss(labels, logits, features)))
        predictions = head.predictions(logits)
        record({key: value.numpy() for key, value in predictions.items()})
        metrics = head.update_metrics(head.metrics(), features, logits, labels)
        record({key: float(metric.result()) for key, metric in sorted(metrics.items())})


def _error(record, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except (ValueError, TypeError) as error:
        record(type(error).__name__)
    else:
        record("fine")


def bad_arguments(model_dir, record):
    heads = tf.estimator
    for make, arguments in (
        (heads.BinaryClassHead, {"thresholds": [1.0]}),
        (heads.BinaryClassHead, {"label_vocabulary": {"a", "b"}}),
        (heads.BinaryClassHead, {"loss_reduction": "none"}),
        (heads.BinaryClassHead, {"loss_fn": lambda labels: labels}),
        (heads.BinaryClassHead, {"loss_fn": lambda labels, logits, more: labels}),
        (heads.MultiClassHead, {"n_classes": 2}),
        (heads.MultiClassHead, {"n_classes": None}),
        (heads.MultiClassHead, {"n_classes": 3, "label_vocabulary": ["a", "b"]}),
        (heads.MultiLabelHead, {"n_classes": 1}),
        (heads.MultiLabelHead, {"n_classes": 3, "classes_for_class_based_metrics": [3]}),
        (heads.MultiLabelHead, {"n_classes": 3, "classes_for_class_based_metrics": ["a"]}),
        (heads.RegressionHead, {"label_dimension": 0}),
        (heads.MultiHead, {"heads": []}),
        (heads.MultiHead, {"heads": [heads.RegressionHead()]}),
        (heads.MultiHead, {"heads": [heads.RegressionHead(name="a")], "head_weights": [1, 2]}),
    ):
        _error(record, make, **arguments)


def bad_tensors(model_dir, record):
    heads = tf.estimator
    ones = np.ones([4, 1], np.float32)
    sparse = tf.SparseTensor([[0, 0]], [1], [4, 1])
    for head, labels, logits in (
        (heads.RegressionHead(), None, ones),
        (heads.RegressionHead(), sparse, ones),
        (heads.RegressionHead(), np.ones([4, 2], np.float32), ones),
        (heads.RegressionHead(), np.ones([3, 1], np.float32), ones),
        (heads.RegressionHead(), ones, np.ones([4], np.float32)),
        (heads.RegressionHead(), ones, np.ones([4, 2], np.float32)),
        (heads.BinaryClassHead(), ones * 2, ones),
        (heads.BinaryClassHead(), -ones, ones),
        (heads.MultiClassHead(3), ones, np.ones([4, 3], np.float32)),
        (heads.LogisticRegressionHead(), ones * 2, ones),
    ):
        _error(record, head.loss, labels, logits, {})
    _error(record, heads.RegressionHead(weight_column="x").loss, ones, ones, {"x": ones[:2]})
    _error(record, heads.RegressionHead(weight_column=3).loss, ones, ones, {"x": ones})


def no_step(model_dir, record):
    both = {"optimizer": tf.train.AdagradOptimizer(1.0), "train_op_fn": models.descent}
    for given in ({}, both):
        model_fn = _model_fn(heads_of_v1._regression_head, **given)
        estimator = models.estimator(model_dir, model_fn)
        _error(record, estimator.train, _input_fn(NUMBERS), steps=1)
