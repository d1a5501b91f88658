"""Side (b): the same maths as a keras.Model, through `fit`, `evaluate` and `predict`."""

import types
from typing import Any

import keras
import tensorflow as tf

from benchmarks import models
from benchmarks.gate import Gate
from benchmarks.sides import Settings, Timing

_ENDLESS = 10**9


class Maths(keras.Model):
    def __init__(self, model: types.ModuleType, predictions: bool = False) -> None:
        super().__init__()
        self._maths, self._predictions = model, predictions
        self._by_name = {}
        for name, (shape, kind) in models.variables(model).items():
            if isinstance(kind, float):
                kind = keras.initializers.RandomNormal(stddev=kind)
            weight = self.add_weight(shape=shape, initializer=kind, name=name.replace("/", "_"))
            self._by_name[name] = weight

    def _get(self, name: str, shape: Any, kind: Any) -> Any:
        del shape, kind
        return self._by_name[name].value

    def call(self, features: Any) -> Any:
        logits = self._maths.logits(self._get, features)
        if not self._predictions:
            return logits
        return {"probabilities": tf.nn.softmax(logits), "classes": tf.argmax(logits, axis=-1)}


class WeightDecayAdam(keras.optimizers.Optimizer):
    def build(self, variables: Any) -> None:
        if self.built:
            return
        super().build(variables)
        self._m, self._v = self.add_optimizer_variables(variables, ["m", "v"])

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        m, v = self._m[index], self._v[index]
        gradient = tf.convert_to_tensor(gradient)
        next_m = 0.9 * m + 0.1 * gradient
        next_v = 0.999 * v + 0.001 * tf.square(gradient)
        step = next_m / (tf.sqrt(next_v) + 1e-6) + 0.01 * variable
        self.assign(m, next_m)
        self.assign(v, next_v)
        self.assign_sub(variable, learning_rate * step)


def _optimizer(model: types.ModuleType) -> keras.optimizers.Optimizer:
    if model.OPTIMIZER == "adam":
        return keras.optimizers.Adam(1e-3, epsilon=1e-8)
    if model.OPTIMIZER == "adagrad":
        return keras.optimizers.Adagrad(model.RATE)
    if model.OPTIMIZER == "momentum":
        return keras.optimizers.SGD(1e-3, momentum=0.9)
    return WeightDecayAdam(1e-4, global_clipnorm=1.0)


def _compiled(
    model: types.ModuleType,
    settings: Settings,
    metrics: list[str] | None = None,
    predictions: bool = False,
) -> keras.Model:
    compiled = Maths(model, predictions)
    compiled.compile(
        optimizer=_optimizer(model),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=metrics,
        steps_per_execution=settings.loop,
        jit_compile=settings.jit,
    )
    return compiled


class _GateCallback(keras.callbacks.Callback):
    """Holds a training between blocks; called after every execution."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._gate.reached(batch + 1)


def train(model: types.ModuleType, gate: Gate, settings: Settings) -> None:
    """Fits without an end; the gate's time includes the making of the model."""
    compiled = _compiled(model, settings)
    dataset = models.dataset(model)
    callbacks = [_GateCallback(gate)]
    compiled.fit(dataset, steps_per_epoch=_ENDLESS, verbose=0, callbacks=callbacks)


class _FirstCallback(keras.callbacks.Callback):
    def __init__(self, timing: Timing, batch_size: int) -> None:
        super().__init__()
        self._timing, self._batch_size = timing, batch_size

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._timing.piece((batch + 1) * self._batch_size)

    on_predict_batch_end = on_test_batch_end


def evaluate(model: types.ModuleType, settings: Settings) -> Any:
    compiled = _compiled(model, settings, metrics=["accuracy"])

    def call(examples: int) -> Timing:
        timing = Timing()
        callbacks = [_FirstCallback(timing, model.BATCH)]
        compiled.evaluate(models.dataset(model, examples), verbose=0, callbacks=callbacks)
        return timing.end()

    return call


def predict(model: types.ModuleType, settings: Settings) -> Any:
    compiled = _compiled(model, settings, predictions=True)

    def call(examples: int) -> Timing:
        timing = Timing()
        dataset = models.dataset(model, examples, labels=False)
        callbacks = [_FirstCallback(timing, model.BATCH)]
        batch = compiled.predict(dataset, verbose=0, callbacks=callbacks)
        rows = zip(*batch.values(), strict=True)
        found = [dict(zip(batch, row, strict=True)) for row in rows]
        assert len(found) == examples, len(found)
        return timing.end()

    return call
