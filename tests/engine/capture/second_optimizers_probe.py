"""Model_fns with gradient tapes and the optimizers of TensorFlow 2; runs here and in the original.

As a script it trains each for a few steps, and prints by name the losses and the variables of the
checkpoint, as JSON.
"""

import json
import sys
import tempfile
from typing import Any

import numpy as np
import tensorflow

STEPS = 4


def namespace(side: str) -> Any:
    if side == "original":
        return tensorflow.compat.v1
    import tpu_estimator_compat.v1

    return tpu_estimator_compat.v1


class Models:
    """One method per model_fn; each returns loss, train_op, and perhaps what is to be saved."""

    def __init__(self, tf: Any):
        self.tf, self.tf2 = tf, tf.compat.v2

    def weights(self):
        ones = self.tf.ones_initializer()
        return [
            self.tf.get_variable("w", [3, 1], initializer=ones),
            self.tf.get_variable("b", [1], initializer=ones),
        ]

    def loss(self, x, y, weights):
        return self.tf.reduce_mean((self.tf.matmul(x, weights[0]) + weights[1] - y) ** 2)

    def step(self):
        return self.tf.train.get_or_create_global_step()

    def gradients(self, x, y):
        weights = self.weights()
        with self.tf.GradientTape() as tape:
            loss = self.loss(x, y, weights)
        return loss, tape.gradient(loss, weights), weights

    def first_optimizer(self, x, y):
        loss, gradients, weights = self.gradients(x, y)
        optimizer = self.tf.train.AdamOptimizer(0.1)
        return loss, optimizer.apply_gradients(zip(gradients, weights, strict=True), self.step())

    def penalized(self, x, y):
        weights = self.weights()
        with self.tf.GradientTape(persistent=True) as outer:
            with self.tf.GradientTape(watch_accessed_variables=False) as inner:
                inner.watch(x)
                made = self.loss(x, y, weights)
            slope = inner.gradient(made, x)
            loss = made + self.tf.reduce_sum(slope**2)
        gradients = [outer.gradient(loss, weight) for weight in weights]
        optimizer = self.tf.train.GradientDescentOptimizer(0.01)
        return loss, optimizer.apply_gradients(zip(gradients, weights, strict=True), self.step())

    def not_recorded(self, x, y):
        weights = self.weights()
        with self.tf.GradientTape() as tape:
            with tape.stop_recording():
                scale = self.loss(x, y, weights)
            loss = self.loss(x, y, weights) * scale
        gradients = tape.gradient(loss, weights)
        optimizer = self.tf.train.GradientDescentOptimizer(0.001)
        return loss, optimizer.apply_gradients(zip(gradients, weights, strict=True), self.step())

    def jacobian(self, x, y):
        weights = self.weights()
        with self.tf.GradientTape() as tape:
            outputs = self.tf.matmul(x, weights[0]) + weights[1]
        [jacobian] = tape.jacobian(outputs, weights[:1])
        loss = self.loss(x, y, weights) + 0.01 * self.tf.reduce_sum(jacobian)
        return loss, self.tf.train.GradientDescentOptimizer(0.01).minimize(loss, self.step())

    def through_a_function(self, x, y):
        weights = self.weights()
        loss_of = self.tf2.function(lambda a, b: self.loss(a, b, weights))
        with self.tf.GradientTape() as tape:
            loss = loss_of(x, y)
        gradients = tape.gradient(loss, weights)
        optimizer = self.tf.train.GradientDescentOptimizer(0.01)
        return loss, optimizer.apply_gradients(zip(gradients, weights, strict=True), self.step())

    def applied(self, x, y):
        loss, gradients, weights = self.gradients(x, y)
        optimizer = self.tf.keras.optimizers.Adam(0.1)
        optimizer.iterations = self.step()
        return loss, optimizer.apply_gradients(zip(gradients, weights, strict=True))

    def minimized(self, x, y):
        weights = self.weights()
        optimizer = self.tf2.keras.optimizers.legacy.SGD(0.01, momentum=0.9, nesterov=True)
        optimizer.iterations = self.step()
        train_op = optimizer.minimize(lambda: self.loss(x, y, weights), weights)
        with self.tf.control_dependencies([train_op]):
            return self.loss(x, y, weights), train_op

    def minimized_by_tape(self, x, y):
        weights = self.weights()
        with self.tf.GradientTape() as tape:
            loss = self.loss(x, y, weights)
        optimizer = self.tf2.keras.optimizers.legacy.Adagrad(0.1)
        optimizer.iterations = self.step()
        return loss, optimizer.minimize(loss, weights, tape=tape)

    def updated(self, x, y):
        weights = self.weights()
        loss = self.loss(x, y, weights)
        optimizer = self.tf2.keras.optimizers.legacy.RMSprop(0.01, centered=True)
        optimizer.iterations = self.step()
        return loss, self.tf.group(*optimizer.get_updates(loss, weights))

    def iterations_of_its_own(self, x, y):
        loss, gradients, weights = self.gradients(x, y)
        optimizer = self.tf2.keras.optimizers.legacy.Adamax(0.1)
        train_op = optimizer.apply_gradients(zip(gradients, weights, strict=True))
        with self.tf.control_dependencies([train_op]):
            return loss, self.tf.assign_add(self.step(), 1)

    def scheduled(self, x, y):
        loss, gradients, weights = self.gradients(x, y)
        schedule = self.tf2.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
        optimizer = self.tf2.keras.optimizers.legacy.SGD(schedule, clipnorm=0.5)
        optimizer.iterations = self.step()
        return loss, optimizer.apply_gradients(zip(gradients, weights, strict=True))

    def keras_model(self, x, y):
        layers = self.tf2.keras.layers
        model = self.tf2.keras.Sequential(
            [
                layers.Dense(4, "relu", kernel_initializer="ones"),
                layers.BatchNormalization(),
                layers.Dense(1, kernel_initializer="ones"),
            ]
        )
        with self.tf.GradientTape() as tape:
            loss = self.tf.reduce_mean((model(x, training=True) - y) ** 2)
        weights = model.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimizer = self.tf2.keras.optimizers.legacy.Nadam(0.01)
        optimizer.iterations = self.step()
        applied = optimizer.apply_gradients(zip(gradients, weights, strict=True))
        with self.tf.control_dependencies([applied]):
            return loss, self.tf.group(*model.get_updates_for(None), *model.get_updates_for(x))

    def objects(self, x, y):
        layer = self.tf2.keras.layers.Dense(1, kernel_initializer="ones")
        with self.tf.GradientTape() as tape:
            loss = self.tf.reduce_mean((layer(x) - y) ** 2)
        weights = layer.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimizer = self.tf2.keras.optimizers.legacy.Adam(0.1)
        optimizer.iterations = self.step()
        applied = optimizer.apply_gradients(zip(gradients, weights, strict=True))
        saved = self.tf2.train.Checkpoint(layer=layer, optimizer=optimizer, step=self.step())
        return loss, applied, saved


MODELS = [name for name in vars(Models) if name not in ("weights", "loss", "step", "gradients")]
MODELS = [name for name in MODELS if not name.startswith("_")]


def batches(tf: Any):
    """The same batches everywhere: x of shape [8, 3], y of shape [8, 1]."""
    random = np.random.RandomState(0)
    x = random.randn(8 * STEPS, 3).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8, drop_remainder=True)


def trained(tf: Any, name: str, config: Any = None) -> dict[str, Any]:
    losses: list[float] = []

    class Recorder(tf.train.SessionRunHook):
        def before_run(self, context):
            return tf.train.SessionRunArgs("recorded:0")

        def after_run(self, context, values):
            losses.append(float(values.results))

    def model_fn(features, labels, mode):
        loss, train_op, *saved = getattr(Models(tf), name)(features, labels)
        loss = tf.identity(loss, "recorded")
        scaffold = tf.train.Scaffold(saver=saved[0]) if saved else None
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold)

    model_dir = tempfile.mkdtemp()
    estimator = tf.estimator.Estimator(model_fn, model_dir, config)
    # Not to the end of the data: there the original makes some changes once more, of Nadam's cache.
    estimator.train(lambda: batches(tf), hooks=[Recorder()], steps=STEPS)
    estimator.train(lambda: batches(tf), hooks=[Recorder()], steps=STEPS)  # from the checkpoint
    names = [n for n in estimator.get_variable_names() if n != "_CHECKPOINTABLE_OBJECT_GRAPH"]
    values = {name: estimator.get_variable_value(name).tolist() for name in names}
    return {"losses": losses, "variables": values}


def outcome(tf: Any, name: str) -> dict[str, Any]:
    try:
        return trained(tf, name)
    except Exception as error:  # both sides are asked to fail alike
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    tf = namespace(sys.argv[1])
    chosen = sys.argv[2:] or MODELS
    print(json.dumps({name: outcome(tf, name) for name in chosen}))
