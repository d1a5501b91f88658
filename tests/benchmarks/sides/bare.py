"""Side (a): a hand-written `tf.function` loop with the very ops that TF1's optimizers make."""

import types
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from benchmarks import models
from benchmarks.gate import Gate
from benchmarks.sides import Settings, Timing

_ENDLESS = 10**9


def _variable(value: Any) -> tf.Variable:
    return tf.Variable(value, trainable=False)


class _Weights:
    def __init__(self, model: types.ModuleType) -> None:
        self.by_name = {
            name: tf.Variable(models.initial(kind)(shape, tf.float32))
            for name, (shape, kind) in models.variables(model).items()
        }
        self.all = list(self.by_name.values())

    def get(self, name: str, shape: Any, kind: Any) -> tf.Variable:
        del shape, kind
        return self.by_name[name]


class _Adam:
    def __init__(self, weights: list[tf.Variable]) -> None:
        self._slots = [
            (w, _variable(tf.zeros_like(w)), _variable(tf.zeros_like(w))) for w in weights
        ]
        self._powers = [(_variable(0.9), 0.9), (_variable(0.999), 0.999)]

    def apply(self, grads: list[tf.Tensor]) -> None:
        powers = [power.read_value() for power, _ in self._powers]
        for (weight, m, v), grad in zip(self._slots, grads, strict=True):
            tf.raw_ops.ResourceApplyAdam(
                var=weight.handle,
                m=m.handle,
                v=v.handle,
                beta1_power=powers[0],
                beta2_power=powers[1],
                lr=1e-3,
                beta1=0.9,
                beta2=0.999,
                epsilon=1e-8,
                grad=grad,
            )
        for (power, beta), value in zip(self._powers, powers, strict=True):
            power.assign(value * beta)


class _Momentum:
    def __init__(self, weights: list[tf.Variable]) -> None:
        self._slots = [(w, _variable(tf.zeros_like(w))) for w in weights]

    def apply(self, grads: list[tf.Tensor]) -> None:
        for (weight, momentum), grad in zip(self._slots, grads, strict=True):
            tf.raw_ops.ResourceApplyMomentum(
                var=weight.handle, accum=momentum.handle, lr=1e-3, grad=grad, momentum=0.9
            )


class _DecayAdam(_Adam):
    def apply(self, grads: list[tf.Tensor]) -> None:
        grads, _ = tf.clip_by_global_norm(grads, 1.0)
        for (weight, m, v), grad in zip(self._slots, grads, strict=True):
            next_m = tf.multiply(0.9, m) + tf.multiply(0.1, grad)
            next_v = tf.multiply(0.999, v) + tf.multiply(0.001, tf.square(grad))
            step = next_m / (tf.sqrt(next_v) + 1e-6) + 0.01 * weight
            m.assign(next_m)
            v.assign(next_v)
            weight.assign(weight - 1e-4 * step)


_OPTIMIZERS = {"adam": _Adam, "momentum": _Momentum, "decay_adam": _DecayAdam}


def _train_step(model: types.ModuleType, settings: Settings) -> Callable[[Any], tf.Tensor]:
    weights = _Weights(model)
    optimizer = _OPTIMIZERS[model.OPTIMIZER](weights.all)
    global_step = _variable(tf.constant(0, tf.int64))
    summaries = settings.listen == "host_call"
    writer = tf.summary.create_file_writer(settings.model_dir) if summaries else None

    def step(data: Any) -> tf.Tensor:
        features, labels = data
        with tf.GradientTape() as tape:
            loss = models.loss(model.logits(weights.get, features), labels)
        optimizer.apply(tape.gradient(loss, weights.all))
        global_step.assign_add(1)
        if writer is not None:
            with writer.as_default():
                for i, factor in enumerate((1.0, 2.0, 3.0, 4.0)):
                    tf.summary.scalar(f"scalar_{i}", loss * factor, step=global_step)
        return loss

    return step


def train(model: types.ModuleType, gate: Gate, settings: Settings) -> None:
    step = _train_step(model, settings)
    if settings.jit:
        step = tf.function(step, jit_compile=True, autograph=False)
    iterator = iter(models.dataset(model))

    @tf.function(autograph=False)
    def run(iterator: Any, steps: tf.Tensor) -> Any:
        return tf.while_loop(
            lambda i, loss: i < steps,
            lambda i, loss: (i + 1, step(next(iterator))),
            (tf.constant(0), tf.constant(0.0)),
        )

    done = 0
    while done < _ENDLESS:
        steps = min(settings.loop, gate.steps_left(done))
        float(run(iterator, tf.constant(steps))[1])
        done += steps
        gate.reached(done)


def evaluate(model: types.ModuleType, settings: Settings) -> Any:
    """Loss and accuracy over the data, in a loop of all steps but the first."""
    weights = _Weights(model)
    totals = [_variable(0.0), _variable(0.0), _variable(0.0)]

    @tf.function(autograph=False)
    def run(iterator: Any, steps: tf.Tensor) -> Any:
        def body(i: tf.Tensor) -> Any:
            features, labels = next(iterator)
            logits = model.logits(weights.get, features)
            hits = tf.equal(tf.argmax(logits, -1, tf.int32), labels)
            totals[0].assign_add(models.loss(logits, labels))
            totals[1].assign_add(tf.reduce_sum(tf.cast(hits, tf.float32)))
            totals[2].assign_add(tf.cast(tf.size(labels), tf.float32))
            return (i + 1,)

        return tf.while_loop(lambda i: i < steps, body, (tf.constant(0),))

    def call(examples: int) -> Timing:
        timing = Timing()
        for total in totals:
            total.assign(0.0)
        iterator = iter(models.dataset(model, examples))
        run(iterator, tf.constant(1))
        timing.piece(model.BATCH)
        run(iterator, tf.constant(examples // model.BATCH - 1))
        assert float(totals[2]) == examples
        return timing.end()

    return call


def predict(model: types.ModuleType, settings: Settings) -> Any:
    weights = _Weights(model)

    @tf.function(autograph=False)
    def run(features: Any) -> dict[str, tf.Tensor]:
        logits = model.logits(weights.get, features)
        return {"probabilities": tf.nn.softmax(logits), "classes": tf.argmax(logits, axis=-1)}

    def call(examples: int) -> Timing:
        timing = Timing()
        found = []
        for features in models.dataset(model, examples, labels=False):
            batch = {name: value.numpy() for name, value in run(features).items()}
            rows = zip(*batch.values(), strict=True)
            found += [dict(zip(batch, row, strict=True)) for row in rows]
            timing.piece(model.BATCH)
        assert len(found) == examples, len(found)
        return timing.end()

    return call
