"""Estimators made of Keras models, by the original or by this package.

As a script it prints what each case gives, as JSON.
"""

import json
import os
import pathlib
import sys
import tempfile
from typing import Any

import numpy as np
import tensorflow

STEPS = 3


def namespace(side: str) -> Any:
    if side == "original":
        return tensorflow
    from tpu_estimator_compat.old_names.legacy import namespaces

    return namespaces.v2()


def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(1)
    x = random.randn(24, 4).astype(np.float32)
    return x, (x[:, :1] - x[:, 1:2] * 0.5).astype(np.float32)


class Case:
    """A Keras model and what to do with it."""

    arguments: dict[str, Any] = {}
    v1 = False

    def __init__(self, tf: Any):
        self.tf, self.keras = tf, (tf.compat.v1 if self.v1 else tf).keras

    def build(self) -> Any:
        return weighted(self.compiled(self.model()))

    def model(self) -> Any:
        layers = self.keras.layers
        return self.keras.Sequential(
            [layers.Dense(3, activation="tanh", input_shape=(4,)), layers.Dense(1)]
        )

    def compiled(self, model: Any) -> Any:
        optimizer = self.tf.keras.optimizers.legacy.SGD(0.1, momentum=0.5)
        model.compile(optimizer, loss="mse", metrics=["mae"])
        return model

    def options(self) -> dict[str, Any]:
        return dict(self.arguments)

    def input_fn(self) -> Any:
        return self.tf.data.Dataset.from_tensor_slices(self.pair()).batch(8)

    def predict_input_fn(self) -> Any:
        return self.input_fn()

    def pair(self) -> Any:
        return data()

    def receiver_fn(self) -> Any:
        x = self.tf.compat.v1.placeholder(self.tf.float32, [None, 4], "x")
        return self.tf.estimator.export.TensorServingInputReceiver(x, {"x": x})


def weighted(model: Any) -> Any:
    """Gives a built model weights that every side computes alike."""
    random = np.random.RandomState(7)
    shapes = [weight.shape for weight in model.get_weights()]
    model.set_weights([random.uniform(-0.5, 0.5, shape) for shape in shapes])
    return model


class Sequential(Case):
    """Defaults of TensorFlow 2: an object-based checkpoint."""


class SequentialSaver(Case):
    arguments = {"checkpoint_format": "saver"}


class SequentialV1(Case):
    """Defaults of `tf.compat.v1.keras`: a name-based checkpoint."""

    v1 = True


class NewOptimizer(Case):
    arguments = {"checkpoint_format": "saver"}

    def compiled(self, model):
        model.compile(self.tf.keras.optimizers.Adam(0.01), loss="mse")
        return model


class OptimizerByName(Case):
    def compiled(self, model):
        model.compile("rmsprop", loss="mae", metrics=["mse"])
        return model


class FirstOptimizer(Case):
    """An optimizer of `tf.train` has no config; the clone takes it as it is."""

    arguments = {"checkpoint_format": "saver"}

    def compiled(self, model):
        model.compile(self.tf.compat.v1.train.AdamOptimizer(0.01), loss="mse")
        return model


class Schedule(Case):
    def compiled(self, model):
        rate = self.tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
        model.compile(self.tf.keras.optimizers.legacy.Adam(rate), loss="mse")
        return model


class Functional(Case):
    """Two inputs, two outputs, dicts of features and labels, names for metrics, signatures."""

    def options(self):
        export = self.tf.estimator.export
        return {
            "export_outputs": {"first": export.RegressionOutput, "second": export.PredictOutput},
            "metric_names_map": {
                "first_mean_absolute_error": "mae of the first",
                "second_mean_squared_error": "mse of the second",
            },
        }

    def model(self):
        keras = self.keras
        left, right = (keras.Input([2], name=name) for name in ("left", "right"))
        joined = keras.layers.concatenate([left, right])
        hidden = keras.layers.Dense(3, activation="relu", name="hidden")(joined)
        outputs = [keras.layers.Dense(1, name=name)(hidden) for name in ("first", "second")]
        return keras.Model([left, right], outputs)

    def compiled(self, model):
        model.compile(
            self.tf.keras.optimizers.legacy.SGD(0.05),
            loss={"first": "mse", "second": "mae"},
            loss_weights={"first": 1.0, "second": 0.5},
            metrics={"first": "mean_absolute_error", "second": "mean_squared_error"},
        )
        return model

    def pair(self):
        x, y = data()
        return {"left": x[:, :2], "right": x[:, 2:]}, {"first": y, "second": -y}

    def receiver_fn(self):
        v1 = self.tf.compat.v1
        tensors = {
            name: v1.placeholder(self.tf.float32, [None, 2], name) for name in ("left", "right")
        }
        return self.tf.estimator.export.ServingInputReceiver(tensors, tensors)


class Normalized(Case):
    """Batch normalisation, dropout without a rate, and a penalty: updates and losses of layers."""

    def model(self):
        layers, keras = self.keras.layers, self.keras
        return keras.Sequential(
            [
                layers.Dense(3, kernel_regularizer=keras.regularizers.l2(0.1), input_shape=(4,)),
                layers.BatchNormalization(momentum=0.5),
                layers.Dropout(0.0),
                layers.Dense(1),
            ]
        )


class SampleWeights(Case):
    def pair(self):
        x, y = data()
        weights = np.linspace(0, 2, len(x), dtype=np.float32)
        return {"features": x, "sample_weights": weights}, y

    def predict_input_fn(self):
        """Without weights: a model that only predicts has nowhere to put them."""
        return self.tf.data.Dataset.from_tensor_slices(data()).batch(8)


class Subclassed(Case):
    """Made anew from its config, so its weights come from its initializers."""

    arguments = {"checkpoint_format": "saver"}

    def build(self):
        keras = self.keras

        class Mine(keras.Model):
            def __init__(self, width, **arguments):
                super().__init__(**arguments)
                self.width = width
                self.hidden = keras.layers.Dense(width, "relu", kernel_initializer="ones")
                self.top = keras.layers.Dense(1, kernel_initializer="ones")

            def call(self, inputs):
                return self.top(self.hidden(inputs))

            def get_config(self):
                return {"width": self.width}

        return self.compiled(Mine(3))


class CustomObjects(Case):
    def build(self):
        keras = self.keras

        class Doubled(keras.layers.Layer):
            def call(self, inputs):
                return inputs * 2.0

        self.objects = {"Doubled": Doubled}
        layers = [keras.layers.Dense(2, input_shape=(4,)), Doubled(), keras.layers.Dense(1)]
        return weighted(self.compiled(keras.Sequential(layers)))

    def options(self):
        return {"custom_objects": self.objects}


class FromFile(Case):
    def options(self):
        path = os.path.join(tempfile.mkdtemp(), "model.h5")
        self.build().save(path)
        return {"keras_model_path": path}


CASES = {
    case.__name__: case
    for case in (
        *(Sequential, SequentialSaver, SequentialV1, NewOptimizer, OptimizerByName, Schedule),
        *(FirstOptimizer, Functional, Normalized, SampleWeights, Subclassed, CustomObjects),
        FromFile,
    )
}


def run(tf: Any, name: str) -> dict[str, Any]:
    tf.keras.backend.clear_session()  # names of layers begin anew
    case = CASES[name](tf)
    model = case.build()
    options = case.options()
    if "keras_model_path" not in options:
        options["keras_model"] = model
    losses: list[float] = []

    class Recorder(tf.estimator.SessionRunHook):
        def before_run(self, context):
            found = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.LOSSES)[-1]
            return tf.compat.v1.train.SessionRunArgs(found)

        def after_run(self, context, values):
            losses.append(float(values.results))

    model_dir = tempfile.mkdtemp()
    estimator = case.keras.estimator.model_to_estimator(
        model_dir=model_dir, config=tf.estimator.RunConfig(tf_random_seed=3), **options
    )
    first = estimator.evaluate(case.input_fn)
    estimator.train(case.input_fn, hooks=[Recorder()])
    results = {
        "first": numbers(first),
        "losses": losses,
        "evaluated": numbers(estimator.evaluate(case.input_fn, steps=2)),
        "predicted": [numbers(p) for p in estimator.predict(case.predict_input_fn)][:3],
        "variables": {n: value(estimator, n) for n in estimator.get_variable_names()},
        "files": files(model_dir),
        "signatures": signatures(tf, estimator, case),
    }
    estimator.train(case.input_fn)
    again = {n: value(estimator, n) for n in estimator.get_variable_names()}
    return results | {"trained on": again}


def numbers(values: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in values.items()}


def value(estimator: Any, name: str) -> Any:
    if name == "_CHECKPOINTABLE_OBJECT_GRAPH":
        return "a graph"
    return np.asarray(estimator.get_variable_value(name)).tolist()


def files(model_dir: str) -> list[str]:
    found = pathlib.Path(model_dir).rglob("*")
    names = [str(path.relative_to(model_dir)) for path in found if path.is_file()]
    return sorted(name for name in names if "tfevents" not in name)


def signatures(tf: Any, estimator: Any, case: Case) -> dict[str, Any]:
    path = estimator.export_saved_model(tempfile.mkdtemp(), case.receiver_fn)
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], path.decode())
        return {
            key: [
                signature.method_name,
                sorted([k, t.name] for k, t in signature.inputs.items()),
                sorted([k, t.name] for k, t in signature.outputs.items()),
            ]
            for key, signature in loaded.signature_def.items()
        }


def outcome(tf: Any, name: str) -> dict[str, Any]:
    try:
        return run(tf, name)
    except Exception as error:  # the other side is asked to fail alike
        import traceback

        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    tf = namespace(sys.argv[1])
    chosen = sys.argv[2:] or CASES
    print(json.dumps({name: outcome(tf, name) for name in chosen}))
