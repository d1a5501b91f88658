import os
import tempfile
import warnings

import numpy as np
import tensorflow.compat.v1 as tf


def _input_fn():
    x = np.arange(1, 9, dtype=np.float32).reshape(8, 1) / 8.0
    return tf.data.Dataset.from_tensor_slices((x, 2 * x)).repeat().batch(2, drop_remainder=True)


def _finite():
    return _input_fn().take(3)


def _sequential(optimizer="sgd", metrics=None):
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(1,), name="dense")]
    )
    model.compile(optimizer, "mse", metrics=metrics)
    return model


def _config(**more):
    return tf.estimator.RunConfig(tf_random_seed=1, save_summary_steps=2, **more)


def _to_estimator(model, model_dir, **more):
    return tf.keras.estimator.model_to_estimator(
        model, model_dir=model_dir, config=_config(), **more
    )


def a_sequential_model(model_dir, record):
    estimator = _to_estimator(_sequential(metrics=["mae"]), model_dir)
    record(type(estimator).__name__)
    estimator.train(_input_fn, steps=3)
    record(estimator.evaluate(_finite))
    return list(estimator.predict(_finite))


def checkpoint_format_saver(model_dir, record):
    estimator = _to_estimator(_sequential(), model_dir, checkpoint_format="saver")
    estimator.train(_input_fn, steps=2)
    return sorted(estimator.get_variable_names())


def a_functional_model(model_dir, record):
    a = tf.keras.Input((1,), name="a")
    b = tf.keras.Input((1,), name="b")
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones", name="sum")
    outputs = [dense(tf.keras.layers.add([a, b])), tf.keras.layers.subtract([a, b], name="less")]
    model = tf.keras.Model([a, b], outputs)
    model.compile("sgd", {"sum": "mse", "less": "mae"})

    def input_fn():
        x = np.arange(1, 9, dtype=np.float32).reshape(8, 1)
        data = ({"a": x, "b": 2 * x}, {"sum": x, "less": x})
        return tf.data.Dataset.from_tensor_slices(data).batch(2)

    estimator = _to_estimator(model, model_dir)
    estimator.train(input_fn)
    record(estimator.evaluate(input_fn))
    return next(estimator.predict(input_fn))


def weights_of_the_model(model_dir, record):
    model = _sequential()
    model.set_weights([np.array([[3.0]], np.float32), np.array([1.0], np.float32)])
    estimator = _to_estimator(model, model_dir)
    return estimator.evaluate(_finite)


def an_optimizer_of_tf_train(model_dir, record):
    estimator = _to_estimator(_sequential(tf.train.AdamOptimizer(0.1)), model_dir)
    estimator.train(_input_fn, steps=2)
    return estimator.evaluate(_finite)


def a_legacy_keras_optimizer(model_dir, record):
    optimizer = tf.keras.optimizers.legacy.Adam(0.1)
    estimator = _to_estimator(_sequential(optimizer), model_dir)
    estimator.train(_input_fn, steps=2)
    estimator.train(_input_fn, steps=1)


def metric_names_map(model_dir, record):
    estimator = _to_estimator(
        _sequential(metrics=["mae"]), model_dir, metric_names_map={"mae": "renamed"}
    )
    return estimator.evaluate(_finite)


def a_model_that_is_not_compiled(model_dir, record):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    _to_estimator(model, model_dir)


def neither_model_nor_path(model_dir, record):
    tf.keras.estimator.model_to_estimator(model_dir=model_dir)


def a_checkpoint_format_that_is_unknown(model_dir, record):
    _to_estimator(_sequential(), model_dir, checkpoint_format="zip")


def updates_of_batch_normalization(model_dir, record):
    model = tf.keras.Sequential(
        [
            tf.keras.layers.BatchNormalization(momentum=0.5, input_shape=(1,)),
            tf.keras.layers.Dense(1, kernel_initializer="ones"),
        ]
    )
    model.compile("sgd", "mse")
    estimator = _to_estimator(model, model_dir, checkpoint_format="saver")
    estimator.train(_input_fn, steps=3)
    return estimator.evaluate(_finite)


def examples_with_weights(model_dir, record):
    def input_fn():
        x = np.arange(1, 9, dtype=np.float32).reshape(8, 1)
        features = {"features": x, "sample_weights": x[:, 0] - 1}
        return tf.data.Dataset.from_tensor_slices((features, 2 * x)).batch(2)

    estimator = _to_estimator(_sequential(), model_dir)
    estimator.train(input_fn)
    return estimator.evaluate(input_fn)


def a_subclassed_model(model_dir, record):
    class Mine(tf.keras.Model):
        def __init__(self, width, **arguments):
            super().__init__(**arguments)
            self.width = width
            self.hidden = tf.keras.layers.Dense(width, "relu", kernel_initializer="ones")
            self.top = tf.keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, inputs):
            return self.top(self.hidden(inputs))

        def get_config(self):
            return {"width": self.width}

    model = Mine(3)
    model.compile("sgd", "mse")
    estimator = _to_estimator(model, model_dir, checkpoint_format="saver")
    estimator.train(_input_fn, steps=2)
    return estimator.evaluate(_finite)


class _Doubled(tf.keras.layers.Layer):
    def call(self, inputs):
        return inputs * 2.0


def custom_objects(model_dir, record):
    layers = [_Doubled(input_shape=(1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse")
    estimator = _to_estimator(model, model_dir, custom_objects={"_Doubled": _Doubled})
    return estimator.evaluate(_finite)


def a_model_in_a_file(model_dir, record):
    path = os.path.join(tempfile.mkdtemp(), "model.h5")
    with warnings.catch_warnings():  # of the file's format, in words of their versions
        warnings.simplefilter("ignore")
        _sequential().save(path)
    estimator = _to_estimator(None, model_dir, keras_model_path=path)
    estimator.train(_input_fn, steps=2)
    return estimator.evaluate(_finite)


def signatures_of_outputs(model_dir, record):
    x = tf.keras.Input((1,), name="x")
    outputs = [tf.keras.layers.Dense(1, name=name, kernel_initializer="ones")(x) for name in "ab"]
    model = tf.keras.Model(x, outputs)
    model.compile("sgd", "mse")
    export = tf.estimator.export
    kinds = {"a": export.RegressionOutput, "b": export.PredictOutput}
    estimator = _to_estimator(model, model_dir, export_outputs=kinds)

    def receiver():
        fed = tf.placeholder(tf.float32, [None, 1], "fed")
        return export.ServingInputReceiver({"x": fed}, {"x": fed})

    path = estimator.export_saved_model(tempfile.mkdtemp(), receiver)
    with tf.Session(graph=tf.Graph()) as session:
        loaded = tf.saved_model.load(session, ["serve"], path.decode())
        return {
            key: [signature.method_name, *sorted(signature.outputs)]
            for key, signature in sorted(loaded.signature_def.items())
        }
