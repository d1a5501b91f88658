"""Conformance: what listeners see, such as hooks, of either kind of estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models
from support.sides.races import late_zero

FEATURES, CLASSES = 4, 3


def _examples(count: int = 64) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.RandomState(0).normal(size=(count, FEATURES)).astype(np.float32)
    return x, (x.sum(axis=1) > 0).astype(np.int32)


def endless(params: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(_examples()).repeat().batch(16, drop_remainder=True)


def finite(params: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(_examples()).batch(16, drop_remainder=True)


def features_only(params: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(_examples()[0]).batch(16, drop_remainder=True)


class Recording(tf.train.SessionRunHook):
    def __init__(self, record: Any, name: str, stop_at: int | None = None):
        self.record, self.name, self.stop_at = record, name, stop_at
        self.calls = 0

    def begin(self) -> None:
        self.step = tf.train.get_global_step()
        self.record(self.name, "begin", tf.get_default_graph().finalized)

    def after_create_session(self, session: Any, coord: Any) -> None:
        finalized = session.graph.finalized
        self.record(self.name, "after_create_session", finalized, session.run(self.step))
        self.record(self.name, "coordinator", type(coord).__name__, coord.should_stop())

    def before_run(self, run_context: Any) -> Any:
        step = run_context.session.run(self.step)
        self.record(self.name, "before_run", step, run_context.stop_requested)
        return tf.train.SessionRunArgs({"step": self.step, "named": ["named_loss:0"]})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.calls += 1
        step = run_context.session.run(self.step)
        results = run_values.results
        self.record(self.name, "after_run", step, run_context.stop_requested, results)
        if self.calls == self.stop_at:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        self.record(self.name, "end", session.run(self.step))


def metric_fn(labels: Any, logits: Any) -> Any:
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=-1))}


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    record, spec_hooks = params["record"], params["spec_hooks"]
    weights = np.random.RandomState(1).normal(size=(FEATURES, CLASSES)).astype(np.float32)
    kernel = tf.get_variable("kernel", initializer=weights)
    logits = tf.matmul(features, kernel)
    hooks = [Recording(record, f"spec_{mode}")] if spec_hooks else []
    make = tf.estimator.tpu.TPUEstimatorSpec if params["for_tpu"] else tf.estimator.EstimatorSpec
    if mode == "infer":
        tf.identity(tf.reduce_mean(logits), name="named_loss")
        return make(mode, predictions={"logits": logits}, prediction_hooks=hooks)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.identity(loss, name="named_loss")
    if mode == "eval":
        if params["for_tpu"]:
            metrics = {"eval_metrics": (metric_fn, [labels, logits])}
        else:
            metrics = {"eval_metric_ops": metric_fn(labels, logits)}
        return make(mode, loss=loss, evaluation_hooks=hooks, **metrics)
    tf.summary.scalar("norm", tf.norm(kernel))
    tf.summary.scalar("mean_logit", tf.reduce_mean(logits))
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss * (1.0 + late_zero()), global_step=step)
    more = {}
    if spec_hooks and not params["for_tpu"]:
        more = {"training_chief_hooks": [Recording(record, "chief")]}
    return make(mode, loss=loss, train_op=train_op, training_hooks=hooks, **more)


def _estimator(model_dir: str, record: Any, for_tpu: bool, spec_hooks: bool = False, **config: Any):
    settings = {
        "model_dir": model_dir,
        "save_checkpoints_steps": 10,
        "save_summary_steps": 5,
        "log_step_count_steps": 10,
        **config,
    }
    params = _Shared(record=record, for_tpu=for_tpu, spec_hooks=spec_hooks)
    if not for_tpu:
        return tf.estimator.Estimator(
            model_fn, config=tf.estimator.RunConfig(**settings), params=params
        )
    settings["tpu_config"] = tf.estimator.tpu.TPUConfig(iterations_per_loop=1)
    return tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=tf.estimator.tpu.RunConfig(**settings),
        params=params,
        use_tpu=False,
        train_batch_size=16,
        eval_batch_size=16,
        predict_batch_size=16,
    )


class _Shared(dict):
    def __deepcopy__(self, memo: Any) -> _Shared:
        return _Shared(self)


def trains(model_dir: str, record: Any, for_tpu: bool, **config: Any) -> Any:
    estimator = _estimator(model_dir, record, for_tpu, spec_hooks=True, **config)
    estimator.train(
        endless,
        hooks=[Recording(record, "user")],
        max_steps=25,
        saving_listeners=[models.Listener(record)],
    )
    results = estimator.evaluate(endless, steps=4, hooks=[Recording(record, "user")])
    named = estimator.evaluate(finite, hooks=[Recording(record, "user")], name="named")
    predictions = list(estimator.predict(features_only, hooks=[Recording(record, "user")]))
    return [results, named, len(predictions), [p["logits"] for p in predictions[:2]]]


def quiet(model_dir: str, record: Any, for_tpu: bool, **config: Any) -> Any:
    """Nobody listens but the estimator's own hooks."""
    estimator = _estimator(model_dir, record, for_tpu, **config)
    estimator.train(endless, steps=23)
    estimator.train(endless, steps=14)
    estimator.train(endless, max_steps=37)
    return [estimator.evaluate(finite), estimator.evaluate(endless, steps=13, name="n")]


def keeps_two(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return quiet(model_dir, record, for_tpu, keep_checkpoint_max=2)


def keeps_all(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return quiet(model_dir, record, for_tpu, keep_checkpoint_max=None, save_checkpoints_steps=3)


def keeps_some_for_good(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return quiet(
        model_dir, record, for_tpu, keep_checkpoint_max=1, keep_checkpoint_every_n_hours=1e-9
    )


def without_logs(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return quiet(model_dir, record, for_tpu, log_step_count_steps=None, save_summary_steps=0)


def without_summaries(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return quiet(model_dir, record, for_tpu, save_summary_steps=0)


def without_graph(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return quiet(model_dir, record, for_tpu, checkpoint_save_graph_def=False)


def by_the_clock(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return quiet(
        model_dir, record, for_tpu, save_checkpoints_secs=1000, save_checkpoints_steps=None
    )


def never_saves(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return quiet(
        model_dir, record, for_tpu, save_checkpoints_secs=None, save_checkpoints_steps=None
    )


def data_ends(model_dir: str, record: Any, for_tpu: bool, **config: Any) -> Any:
    estimator = _estimator(model_dir, record, for_tpu, **config)
    estimator.train(
        finite, hooks=[Recording(record, "user")], saving_listeners=[models.Listener(record)]
    )
    return estimator.evaluate(finite, hooks=[Recording(record, "user")])


def hook_stops(model_dir: str, record: Any, for_tpu: bool) -> Any:
    estimator = _estimator(model_dir, record, for_tpu)
    hooks = [Recording(record, "first", stop_at=7), Recording(record, "second")]
    estimator.train(endless, hooks=hooks, steps=50)
    hooks = [Recording(record, "first", stop_at=3), Recording(record, "second")]
    results = estimator.evaluate(endless, hooks=hooks, steps=20)
    hooks = [Recording(record, "first", stop_at=2), Recording(record, "second")]
    return [results, len(list(estimator.predict(features_only, hooks=hooks)))]


def listener_stops(model_dir: str, record: Any, for_tpu: bool) -> Any:
    estimator = _estimator(model_dir, record, for_tpu)
    saver = tf.train.CheckpointSaverHook(
        model_dir, save_steps=6, listeners=[models.Listener(record, stop_at=12)]
    )
    more = [models.Listener(record)]
    estimator.train(endless, hooks=[saver], steps=50, saving_listeners=more)
    return estimator.evaluate(finite)


def _exporter(record: Any, own_name: str) -> Any:
    class Recorded(tf.estimator.Exporter):
        @property
        def name(self) -> str:
            return own_name

        def export(self, estimator, export_path, checkpoint_path, eval_result, final=None, **k):
            final = k.get("is_the_final_export", final)
            folder = estimator.model_dir
            paths = [p.replace(folder, "<dir>") for p in (export_path, checkpoint_path)]
            record("exporter", own_name, paths, eval_result, bool(final))
            return f"{own_name} {eval_result['global_step']}"

    return Recorded()


def schedule(
    model_dir: str, record: Any, for_tpu: bool, *, throttle: float = 0, **config: Any
) -> Any:
    estimator = _estimator(model_dir, record, for_tpu, **config)
    train_spec = tf.estimator.TrainSpec(
        endless,
        max_steps=25,
        hooks=[Recording(record, "train")],
        saving_listeners=[models.Listener(record)],
    )
    eval_spec = tf.estimator.EvalSpec(
        finite,
        steps=3,
        name="while",
        hooks=[Recording(record, "eval")],
        exporters=[_exporter(record, "one"), _exporter(record, "two")],
        start_delay_secs=0,
        throttle_secs=throttle,
    )
    first = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    again = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    return [first, again]


def schedule_throttled(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return schedule(model_dir, record, for_tpu, throttle=1000)


def schedule_to_the_end_of_the_data(model_dir: str, record: Any, for_tpu: bool) -> Any:
    """No max_steps: the data ends, and no export is the final one."""
    estimator = _estimator(model_dir, record, for_tpu, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(finite)
    exporters = _exporter(record, "one")
    eval_spec = tf.estimator.EvalSpec(finite, steps=None, exporters=exporters, throttle_secs=0)
    return tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)


def exporting(model_dir: str, record: Any, for_tpu: bool) -> Any:
    estimator = _estimator(model_dir, record, for_tpu)

    def receiver_fn() -> Any:
        features = tf.placeholder(tf.float32, [None, FEATURES], name="served")
        return tf.estimator.export.TensorServingInputReceiver(features, features)

    exporters = [
        tf.estimator.LatestExporter("latest", receiver_fn, exports_to_keep=2),
        tf.estimator.BestExporter("best", receiver_fn),
        tf.estimator.FinalExporter("final", receiver_fn, as_text=True),
    ]
    results, exports = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(endless, max_steps=35),
        tf.estimator.EvalSpec(finite, steps=None, exporters=exporters, throttle_secs=0),
    )
    for name in ("latest", "best", "final"):
        made = sorted(tf.gfile.ListDirectory(f"{model_dir}/export/{name}"))
        record("exports", name, len(made), [len(m) for m in made])
    record("returned", [type(path).__name__ for path in exports])
    return results


def _stops_early(model_dir: str, record: Any, for_tpu: bool, hook: str, *how: Any, **more: Any):
    estimator = _estimator(model_dir, record, for_tpu, save_checkpoints_steps=5)
    make = getattr(tf.estimator.experimental, f"stop_if_{hook}_hook")
    hooks = [make(estimator, *how, run_every_secs=None, run_every_steps=3, **more)]
    train_spec = tf.estimator.TrainSpec(endless, max_steps=60, hooks=hooks)
    eval_spec = tf.estimator.EvalSpec(finite, steps=None, throttle_secs=0)
    results = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    return [results, sorted(estimator.get_variable_names())]


def higher(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return _stops_early(model_dir, record, for_tpu, "higher", "accuracy", 0.1)


def lower(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return _stops_early(model_dir, record, for_tpu, "lower", "loss", 1.0)


def no_increase(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return _stops_early(model_dir, record, for_tpu, "no_increase", "loss", 10, min_steps=6)


def no_decrease(model_dir: str, record: Any, for_tpu: bool) -> Any:
    return _stops_early(model_dir, record, for_tpu, "no_decrease", "loss", 1)


def in_memory(model_dir: str, record: Any, for_tpu: bool) -> Any:
    estimator = _estimator(model_dir, record, for_tpu)
    hook = tf.estimator.experimental.InMemoryEvaluatorHook(
        estimator,
        finite,
        hooks=[Recording(record, "eval")],
        name="memory",
        every_n_iter=8,
        steps=None,
    )
    estimator.train(endless, hooks=[hook], steps=20)


def stop_at_checkpoint(model_dir: str, record: Any, for_tpu: bool) -> Any:
    estimator = _estimator(model_dir, record, for_tpu)
    hook = tf.estimator.experimental.make_stop_at_checkpoint_step_hook(estimator, 12)
    record("hook", type(hook).__name__)
    estimator.train(endless, hooks=[hook, Recording(record, "user")])


def hooks_of_tf(model_dir: str, record: Any, for_tpu: bool) -> Any:
    estimator = _estimator(model_dir, record, for_tpu)
    names = tf.estimator
    final = names.FinalOpsHook(final_ops=[])

    class MakesFinalOps(tf.train.SessionRunHook):
        """Final ops are tensors of the graph, which is there in `begin`."""

        def begin(self) -> None:
            final._final_ops = {"step": tf.train.get_global_step(), "loss": tf.constant(3.0)}

    fed = []

    class Feeds(names.FeedFnHook):
        def __init__(self) -> None:
            super().__init__(lambda: {self.placeholder: 7.0 + len(fed)})

        def begin(self) -> None:
            self.placeholder = tf.placeholder_with_default(1.0, [])
            self.doubled = self.placeholder * 2.0

        def before_run(self, run_context: Any) -> Any:
            args = super().before_run(run_context)
            return tf.train.SessionRunArgs(self.doubled, feed_dict=args.feed_dict)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            fed.append(float(run_values.results))

    hooks = [
        MakesFinalOps(),
        final,
        Feeds(),
        names.LoggingTensorHook(["named_loss"], every_n_iter=4, at_end=True),
        names.StepCounterHook(every_n_steps=6, output_dir=model_dir + "/counted"),
        names.SummarySaverHook(
            save_steps=3, output_dir=model_dir + "/saved", scaffold=tf.train.Scaffold()
        ),
        names.GlobalStepWaiterHook(0),
        names.StopAtStepHook(num_steps=17),
    ]
    estimator.train(endless, hooks=hooks)
    record("final ops", final.final_ops_values)
    record("fed", fed)
    logging_hook = names.LoggingTensorHook({"in evaluation": "named_loss:0"}, every_n_iter=2)
    return estimator.evaluate(endless, steps=5, hooks=[logging_hook])


class Meddling(tf.train.SessionRunHook):
    def __init__(self, record: Any):
        self.record = record

    def begin(self) -> None:
        self.step = tf.train.get_global_step()
        self.variables = {v.op.name: v for v in tf.global_variables()}
        self.half = tf.assign(self.variables["kernel"], self.variables["kernel"] * 0.5)
        self.norm = tf.norm(self.variables["kernel"])
        with tf.variable_scope("meddling"):
            self.count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
        self.more = tf.assign_add(self.count, 1.0)
        self.value = tf.placeholder(tf.float32, [])
        self.load = tf.assign(self.count, self.value)

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self.load, {self.value: 40.0})
        self.record("created", session.run([self.norm, self.count]))

    def before_run(self, run_context: Any) -> Any:
        before = run_context.session.run(self.variables)
        self.record("before", {name: np.sum(v) for name, v in before.items()})
        return tf.train.SessionRunArgs([self.variables, self.more])

    def after_run(self, run_context: Any, run_values: Any) -> None:
        fetched, count = run_values.results
        self.record("fetched", {name: np.sum(v) for name, v in fetched.items()}, count)
        if fetched["global_step"] == 3:
            run_context.session.run(self.half)
        after = run_context.session.run({**self.variables, "norm": self.norm})
        self.record("after", {name: np.sum(v) for name, v in after.items()})

    def end(self, session: Any) -> None:
        self.record("end", session.run([self.count, self.norm]))


def meddles(model_dir: str, record: Any, for_tpu: bool) -> Any:
    estimator = _estimator(model_dir, record, for_tpu)
    estimator.train(endless, hooks=[Meddling(record)], steps=6)
    results = estimator.evaluate(endless, steps=2, hooks=[Recording(record, "user")])
    return [results, sorted(estimator.get_variable_names())]
