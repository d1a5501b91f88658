"""Reports about model_to_estimator, and Keras layers in a model_fn."""

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from scenarios import models

_keras = tf.keras


def _data(shape=(4, 3), labels=((1.0,),) * 4):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 10.0
    return lambda: tf.data.Dataset.from_tensors((x, np.array(labels, np.float32))).repeat(4)


def _ones(units, **more):
    return _keras.layers.Dense(units, kernel_initializer="ones", **more)


def _estimated(model, model_dir, record, input_fn, **more):
    make = tf2.compat.v2.keras.estimator.model_to_estimator
    try:
        est = make(model, model_dir=model_dir, **more)
        est.train(input_fn, steps=2)
        told = est.evaluate(input_fn, steps=1)
        record(dict(told))
        record(next(est.predict(lambda: input_fn().map(lambda x, y: x))))
    except Exception as error:
        record(type(error).__name__, str(error).splitlines()[0][:150])


def an_input_layer_of_a_sequential_model(model_dir, record):
    """After tensorflow#20552: a Sequential with an InputLayer, which is given a name, or none."""
    for name in (None, "given"):
        layers = [_keras.layers.InputLayer(input_shape=[3], name=name), _ones(2), _ones(1)]
        model = _keras.Sequential(layers)
        model.compile("sgd", "mse", metrics=["mae"])
        _estimated(model, f"{model_dir}/{name}", record, _data())


def a_convolution_that_loses_no_layer(model_dir, record):
    """After tensorflow#25459: a Sequential CNN, whose layers are there after its training."""
    model = _keras.Sequential(
        [
            _keras.layers.Reshape([2, 2, 1], input_shape=[4]),
            _keras.layers.Conv2D(1, 2, kernel_initializer="ones", activation="relu"),
            _keras.layers.Flatten(),
            _ones(1, activation="sigmoid"),
        ]
    )
    model.compile(_keras.optimizers.legacy.SGD(0.1), "binary_crossentropy", metrics=["accuracy"])
    _estimated(model, model_dir, record, _data((4, 4)))
    record([type(layer).__name__ for layer in model.layers])


def an_embedding_below_a_dense_layer(model_dir, record):
    """After tensorflow#25670: an Embedding and Dropout: metrics of an evaluation."""
    model = _keras.Sequential(
        [
            _keras.layers.Embedding(5, 2, embeddings_initializer="ones", input_length=3),
            _keras.layers.GlobalAveragePooling1D(),
            _keras.layers.Dropout(0.0),
            _ones(1, activation="sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy", metrics=["accuracy", "AUC"])
    ids = np.array([[0, 1, 2], [2, 3, 4], [1, 1, 1], [0, 4, 4]])
    labels = np.array([[0.0], [1.0], [1.0], [0.0]], np.float32)
    _estimated(
        model, model_dir, record, lambda: tf.data.Dataset.from_tensors((ids, labels)).repeat(4)
    )


def what_is_no_model(model_dir, record):
    """After tensorflow#14203: "Expected `model` argument to be a `Model` instance"."""
    make = tf2.compat.v2.keras.estimator.model_to_estimator
    model = _keras.Sequential([_ones(1, input_shape=[3])])
    for given in (None, model, object(), lambda: model, [model]):
        models.attempt(record, make, given, model_dir=model_dir)
    models.attempt(record, make, keras_model_path="/no/such/file.h5", model_dir=model_dir)
    models.attempt(record, make, model, keras_model_path="file.h5", model_dir=model_dir)


def outputs_of_ones_own_in_an_export(model_dir, record):
    """After estimator#45: export_outputs of a Keras model that is made an estimator."""
    inputs = _keras.Input([3], name="x")
    model = _keras.Model(inputs, {"one": _ones(1, name="one")(inputs)})
    model.compile("sgd", {"one": "mse"})
    _estimated(
        model,
        model_dir,
        record,
        lambda: _data()().map(lambda x, y: ({"x": x}, {"one": y})),
        export_outputs={"extra": tf.estimator.export.PredictOutput},
    )


def summaries_in_a_lambda_layer(model_dir, record):
    """After tensorflow#17571: a Lambda layer that writes a histogram of what it is given."""

    def seen(x):
        tf.summary.scalar("seen", tf.reduce_mean(x))
        return x * 2.0

    model = _keras.Sequential([_keras.layers.Lambda(seen, input_shape=[3]), _ones(1)])
    model.compile("sgd", "mse")
    config = tf.estimator.RunConfig(save_summary_steps=1, tf_random_seed=1)
    _estimated(model, model_dir, record, _data(), config=config)


def normalization_that_always_trains(model_dir, record):
    """After tensorflow#16455: training=True in each mode, and the updates of an evaluation."""

    def model_fn(features, labels, mode):
        layer = _keras.layers.BatchNormalization(momentum=0.5, name="norm")
        hidden = layer(tf.expand_dims(features["x"], 1), training=True)
        loss = tf.reduce_mean(tf.square(models.weight() * hidden[:, 0] - labels))
        updates = layer.get_updates_for(None) + layer.get_updates_for(features["x"])
        record(mode, len(updates), len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)))
        with tf.control_dependencies(layer.updates):
            train_op = models.descent(loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    est = models.trained(model_dir, 3, model_fn)
    record(est.evaluate(models.batches(), steps=2))
    record({name: est.get_variable_value(name) for name in est.get_variable_names()})
