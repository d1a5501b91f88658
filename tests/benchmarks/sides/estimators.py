"""Sides (c) and (d): one legacy model_fn, through the original and through this package."""

import os
import pathlib
import queue
import tempfile
import time
import types
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from benchmarks import models
from benchmarks.gate import Gate
from benchmarks.sides import SLEEP, Cost, Settings, Timing

_ENDLESS = 10**9


class _Namespace:
    """Where TPUEstimator comes from; `choose` sets it."""

    tpu: Any = None
    original = True


def choose(side: str) -> None:
    if side == "original":
        _Namespace.tpu = tf.estimator.tpu
        return
    import tpu_estimator_compat.tpu

    _Namespace.tpu, _Namespace.original = tpu_estimator_compat.tpu, False


class WeightDecayAdam(tf.train.Optimizer):
    def __init__(self) -> None:
        super().__init__(False, "WeightDecayAdam")

    def _slot(self, param: Any, suffix: str) -> Any:
        zeros = tf.zeros_initializer()
        return tf.get_variable(
            param.op.name + suffix, param.shape, tf.float32, trainable=False, initializer=zeros
        )

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: Any = None
    ) -> Any:
        updates = []
        for grad, param in grads_and_vars:
            m, v = self._slot(param, "/adam_m"), self._slot(param, "/adam_v")
            next_m = tf.multiply(0.9, m) + tf.multiply(0.1, grad)
            next_v = tf.multiply(0.999, v) + tf.multiply(0.001, tf.square(grad))
            step = next_m / (tf.sqrt(next_v) + 1e-6) + 0.01 * param
            updates += [m.assign(next_m), v.assign(next_v), param.assign(param - 1e-4 * step)]
        return tf.group(*updates, name=name)


def _train_op(model: types.ModuleType, loss: tf.Tensor, use_tpu: bool) -> Any:
    step = tf.train.get_or_create_global_step()
    if model.OPTIMIZER == "decay_adam":
        trainable = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(loss, trainable), 1.0)
        adam: Any = WeightDecayAdam()
        if use_tpu:
            adam = _Namespace.tpu.CrossShardOptimizer(adam)
        applied = adam.apply_gradients(zip(grads, trainable))  # noqa: B905
        return tf.group(applied, step.assign_add(1))
    if model.OPTIMIZER == "adam":
        optimizer = tf.train.AdamOptimizer(1e-3)
    elif model.OPTIMIZER == "adagrad":
        optimizer = tf.train.AdagradOptimizer(model.RATE)
    else:
        optimizer = tf.train.MomentumOptimizer(1e-3, 0.9)
    if use_tpu:
        optimizer = _Namespace.tpu.CrossShardOptimizer(optimizer)
    return optimizer.minimize(loss, global_step=step)


def _metric_fn(labels: tf.Tensor, logits: tf.Tensor) -> dict[str, Any]:
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=-1))}


def _host_call(directory: str, loss: tf.Tensor) -> Any:
    def write(step: tf.Tensor, *scalars: tf.Tensor) -> Any:
        summary = tf.compat.v2.summary
        with summary.create_file_writer(directory).as_default(), summary.record_if(True):
            for i, scalar in enumerate(scalars):
                summary.scalar(f"scalar_{i}", scalar[0], step=step[0])
            return tf.summary.all_v2_summary_ops()

    step = tf.reshape(tf.train.get_or_create_global_step(), [1])
    return write, [step, *(tf.reshape(loss * factor, [1]) for factor in (1.0, 2.0, 3.0, 4.0))]


def _sleeping(value: tf.Tensor) -> tf.Tensor:
    def wait(array: Any) -> Any:
        time.sleep(SLEEP)
        return array

    waited = tf.py_func(wait, [value], value.dtype)
    waited.set_shape(value.shape)
    return waited


def _model_fn_of(model: types.ModuleType, settings: Settings) -> Any:
    def get(name: str, shape: Any, kind: Any) -> Any:
        return tf.get_variable(name, shape, initializer=models.initial(kind))

    def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
        logits = model.logits(get, features)
        spec = _Namespace.tpu.TPUEstimatorSpec
        if mode == "infer":
            predictions = {
                "probabilities": tf.nn.softmax(logits),
                "classes": tf.argmax(logits, axis=-1),
            }
            return spec(mode, predictions=predictions)
        loss = models.loss(logits, labels)
        if mode == "train":
            more = {}
            if settings.listen == "host_call":
                more["host_call"] = _host_call(settings.model_dir, loss)
            if settings.listen == "slow_host_call":
                more["host_call"] = (_sleeping, [tf.reshape(loss, [1])])
            train_op = _train_op(model, loss, params["use_tpu"])
            if settings.listen.startswith("slow"):
                train_op = tf.group(train_op, _sleeping(tf.stop_gradient(loss)))
            return spec(mode, loss=loss, train_op=train_op, **more)
        return spec(mode, loss=loss, eval_metrics=(_metric_fn, [labels, logits]))

    return model_fn


def _estimator(
    model: types.ModuleType,
    settings: Settings,
    save_steps: int | None,
    predict_batch_size: int | None = None,
) -> Any:
    tpu = _Namespace.tpu
    config = tpu.RunConfig(
        model_dir=settings.model_dir,
        save_checkpoints_steps=save_steps,
        save_checkpoints_secs=None,
        save_summary_steps=0,
        log_step_count_steps=_ENDLESS,
        tpu_config=tpu.TPUConfig(iterations_per_loop=settings.loop),
        **({} if _Namespace.original else _ours(settings)),
    )
    return tpu.TPUEstimator(
        model_fn=_model_fn_of(model, settings),
        config=config,
        use_tpu=settings.use_tpu,
        train_batch_size=model.BATCH,
        eval_batch_size=model.BATCH,
        predict_batch_size=predict_batch_size or model.BATCH,
        **_tables(model, settings),
    )


def _tables(model: types.ModuleType, settings: Settings) -> dict[str, Any]:
    """Of a model that has them, embedding tables with optimizers of their own."""
    if not settings.use_tpu or not hasattr(model, "embedding_config_spec"):
        return {}
    return {"embedding_config_spec": model.embedding_config_spec()}


def _ours(settings: Settings) -> dict[str, Any]:
    return {"jit_compile": settings.jit, "runtime": settings.runtime}


class GateHook(tf.train.SessionRunHook):
    """Holds a training between blocks. The original calls it every step; here it says when."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def begin(self) -> None:
        self._step = tf.train.get_global_step()

    def steps_until_control(self, global_step: int) -> int:
        return self._gate.steps_left(global_step)

    def before_run(self, run_context: Any) -> Any:
        # Every hook of the original asks for it anyway: it costs a session run nothing more.
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._gate.reached(int(run_values.results))


class EveryStep(tf.train.SessionRunHook):
    """Looks at the step and the loss, and does not say when."""

    def begin(self) -> None:
        self.last: Any = None
        self._fetches = [tf.train.get_global_step(), *tf.get_collection(tf.GraphKeys.LOSSES)[-1:]]

    def before_run(self, run_context: Any) -> Any:
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.last = run_values.results


class EveryHundredSteps(EveryStep):
    def steps_until_control(self, global_step: int) -> int:
        return 100 - global_step % 100


class KeepsLosses(tf.train.LoggingTensorHook):
    def __init__(self) -> None:
        super().__init__({}, every_n_iter=100)
        self.losses: list[float] = []

    def begin(self) -> None:
        self._tensors = {"loss": tf.get_collection(tf.GraphKeys.LOSSES)[-1]}
        super().begin()

    def _log_tensors(self, tensor_values: Any) -> None:
        self._timer.update_last_triggered_step(self._iter_count)
        self.losses.append(float(tensor_values["loss"]))


def train(model: types.ModuleType, gate: Gate, settings: Settings) -> None:
    """Trains without an end; the gate's time includes the making of the estimator."""
    estimator = _estimator(model, settings, None)
    hooks = [GateHook(gate)]
    if settings.listen == "hook":
        hooks.append(EveryHundredSteps())
    if settings.listen == "every_step":
        hooks.append(EveryStep())
    if settings.listen == "timer_hook":
        hooks.append(KeepsLosses())
    estimator.train(lambda params: models.dataset(model), max_steps=_ENDLESS, hooks=hooks)


class _FirstStepHook(tf.train.SessionRunHook):
    def __init__(self, timing: Timing, examples: int) -> None:
        self._timing, self._examples = timing, examples

    def steps_until_control(self, step: int) -> int | None:
        return None if step else 1

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._timing.piece(self._examples)


def _trained(
    model: types.ModuleType, settings: Settings, predict_batch_size: int | None = None
) -> Any:
    estimator = _estimator(model, settings, _ENDLESS, predict_batch_size)
    estimator.train(lambda params: models.dataset(model), max_steps=1)
    return estimator


def evaluate(model: types.ModuleType, settings: Settings) -> Any:
    estimator = _trained(model, settings)

    def call(examples: int) -> Timing:
        timing = Timing()
        # With TPU semantics control comes back once, at the end.
        hooks = [] if settings.use_tpu else [_FirstStepHook(timing, model.BATCH)]
        steps = examples // model.BATCH
        estimator.evaluate(lambda params: models.dataset(model, examples), steps=steps, hooks=hooks)
        return timing.end()

    return call


def predict(model: types.ModuleType, settings: Settings) -> Any:
    estimator = _trained(model, settings)

    def call(examples: int) -> Timing:
        timing = Timing()
        found = []
        for example in estimator.predict(
            lambda params: models.dataset(model, examples, labels=False)
        ):
            timing.piece(1)
            found.append(example)
        assert len(found) == examples, len(found)
        return timing.end()

    return call


def served(model: types.ModuleType, settings: Settings) -> Any:
    """Keeps `predict` open, as servers do; returns a function that asks for n examples in turn."""
    estimator = _trained(model, settings, predict_batch_size=1)
    features, _ = model.examples(64)
    one = tf.nest.map_structure(lambda values: values[0], features)
    types_of = tf.nest.map_structure(lambda value: value.dtype, one)
    shapes = tf.nest.map_structure(lambda value: value.shape, one)
    asked = queue.SimpleQueue()

    def input_fn(params: Any) -> Any:
        source = tf.data.Dataset.from_generator(lambda: iter(asked.get, None), types_of, shapes)
        return source.batch(1, drop_remainder=True)

    answers = estimator.predict(input_fn)

    def call(examples: int) -> Timing:
        timing = Timing()
        for _ in range(examples):
            asked.put(one)
            timing.piece(1)
            next(answers)
        return timing.end()

    return call


def again(model: types.ModuleType, settings: Settings) -> Any:
    """Makes calls as short as they can be: what they take is what a call costs.

    Returns:
      A function of "train", "evaluate" or "predict", which makes one step of that on one estimator,
      or of "export".
    """
    estimator = _estimator(model, settings, _ENDLESS)

    def call(task: str) -> Cost:
        started, cpu = time.perf_counter(), time.process_time()
        if task == "train":
            estimator.train(lambda params: models.dataset(model), steps=1)
        elif task == "evaluate":
            estimator.evaluate(lambda params: models.dataset(model), steps=1)
        elif task == "export":
            _export(model, settings, estimator)
        else:
            found = estimator.predict(lambda params: models.dataset(model, model.BATCH, False))
            assert len(list(found)) == model.BATCH
        return Cost(time.perf_counter() - started, time.process_time() - cpu)

    return call


def export(model: types.ModuleType, settings: Settings) -> Any:
    """Exports the checkpoint of one step of training, for CPU and TPU, as is the default.

    Returns:
      A function of nothing, which exports once and returns seconds and bytes.
    """
    estimator = _estimator(model, settings, _ENDLESS)
    estimator.train(lambda params: models.dataset(model), max_steps=1)
    return lambda: _export(model, settings, estimator)


def _export(model: types.ModuleType, settings: Settings, estimator: Any) -> tuple[float, int]:
    """Seconds and bytes of an export."""
    batch = models.batch(model)

    def receiver() -> Any:
        fed = {k: tf.placeholder(v.dtype, v.shape, name=k) for k, v in batch.items()}
        return _Receiver(fed, fed)

    # A directory each: two exports into one within a second would wait for the next.
    with tempfile.TemporaryDirectory(dir=settings.model_dir) as base:
        started = time.perf_counter()
        path = estimator.export_saved_model(base, receiver)
        seconds = time.perf_counter() - started
        files = [f for f in pathlib.Path(os.fsdecode(path)).rglob("*") if f.is_file()]
        return seconds, sum(f.stat().st_size for f in files)


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: Any
