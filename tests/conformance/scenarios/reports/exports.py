"""Reports about exporters and exports for serving."""

import os
import re

import tensorflow.compat.v1 as tf
from scenarios import models


def _receiver_fn():
    feature = tf.placeholder(tf.float32, [None], name="given")
    return tf.estimator.export.ServingInputReceiver({"x": feature}, {"x": feature})


def _exports(est):
    folder = os.path.join(est.model_dir, "export")
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    return {name: len(os.listdir(os.path.join(folder, name))) for name in sorted(names)}


def _evaluated(est, exporters, steps, **more):
    train = tf.estimator.TrainSpec(models.batches(), max_steps=steps)
    spec = tf.estimator.EvalSpec(
        models.batches(2), steps=None, exporters=exporters, start_delay_secs=0, throttle_secs=0
    )
    return tf.estimator.train_and_evaluate(est, train, spec)


def the_best_by_a_metric(model_dir, record):
    """After tensorflow#30276: "BestExporter, how to write a compare_fn of custom metrics"."""

    def better(best_eval_result, current_eval_result):
        record(best_eval_result["error"], current_eval_result["error"], sorted(best_eval_result))
        return best_eval_result["error"] > current_eval_result["error"]

    exporter = tf.estimator.BestExporter("best", _receiver_fn, compare_fn=better, exports_to_keep=1)
    est = models.estimator(model_dir, save_checkpoints_steps=2)
    _evaluated(est, exporter, 6)
    record(_exports(est))
    models.attempt(
        record, tf.estimator.BestExporter, "other", _receiver_fn, compare_fn=lambda a, b: True
    )


def the_best_of_a_training_that_is_started_again(model_dir, record):
    """After tensorflow#47396: BestExporter exports a worse model when a training task restarts."""
    est = models.estimator(model_dir, save_checkpoints_steps=2)
    for steps in (4, 4, 6):
        exporter = tf.estimator.BestExporter("best", _receiver_fn, exports_to_keep=None)
        record(_evaluated(est, exporter, steps))
        record(_exports(est))


def an_exporter_that_is_called_by_hand(model_dir, record):
    """After bert#833: BestExporter.export with a TPUEstimator, after an evaluation of one's own."""
    est = models.tpu_estimator(model_dir)
    est.train(models.tpu_batches(), steps=2)
    result = est.evaluate(models.tpu_batches(), steps=1)
    for name in ("Best", "Final", "Latest"):
        exporter = getattr(tf.estimator, f"{name}Exporter")(name, _receiver_fn)
        path = os.path.join(model_dir, "export", name)
        for is_final in (False, True):
            told = exporter.export(est, path, est.latest_checkpoint(), result, is_final)
            record(name, exporter.name, type(told).__name__)
    record(_exports(est))


def a_placeholder_in_a_feature_spec(model_dir, record):
    """After tensorflow#14352, tf_ner#19: specs of features that are tensors, arrays or tuples."""
    export = tf.estimator.export
    with tf.Graph().as_default():
        value = tf.placeholder(tf.float32, [None], name="times")
        models.attempt(record, export.build_parsing_serving_input_receiver_fn({"x": value}))
        for given in ({"x": value}, value, [value], {"x": (value, value)}, {}, None, {"x": [1.0]}):
            try:
                made = export.build_raw_serving_input_receiver_fn(given)()
                record(sorted(made.receiver_tensors), type(made.features).__name__)
            except Exception as error:
                record(error)


def receivers_that_are_wrong(model_dir, record):
    """After tensorflow#8042, model-analysis#14, serving#1553: features and tensors mixed up."""
    receiver = tf.estimator.export.ServingInputReceiver
    with tf.Graph().as_default():
        value = tf.placeholder(tf.float32, [None])
        sparse = tf.sparse_placeholder(tf.float32)
        for features, tensors in (
            ({"x": value}, value),
            (value, {"x": value}),
            ({"x": sparse}, {"x": sparse}),
            ({1: value}, {"x": value}),
            ({"x": value}, {1: value}),
            ({"x": "text"}, {"x": value}),
            ({"x": value}, None),
            (None, value),
        ):
            models.attempt(record, receiver, features, tensors)
        models.attempt(record, receiver, {"x": value}, value, {"other": value})
        models.attempt(record, receiver, {"x": value}, value, [value])


def a_model_without_export_outputs(model_dir, record):
    """After tensorflow#16385, sagemaker-examples#273, #189: "export_outputs must be a dict"."""

    def spec_with(outputs):
        def model_fn(features, labels, mode):
            spec = models.model_fn(features, labels, mode)
            return spec._replace(export_outputs=outputs) if mode == "infer" else spec

        return model_fn

    for name, outputs in (("none", None), ("list", []), ("text", "serving"), ("empty", {})):
        est = models.trained(f"{model_dir}/{name}", 1, spec_with(outputs))
        models.attempt(record, est.export_saved_model, f"{model_dir}/{name}/export", _receiver_fn)
        record([re.sub(r"\d+", "N", folder) for folder in _exports(est)])


def signatures_that_cannot_be_served(model_dir, record):
    """After cloudml-samples#333: signatures EXCLUDED, as the receiver has no single string."""
    column = tf.feature_column.numeric_column("x", shape=())
    est = tf.estimator.LinearClassifier([column], model_dir=model_dir, n_classes=3)

    def input_fn():
        return tf.data.Dataset.from_tensors(({"x": [1.0, 2.0]}, [0, 2])).repeat()

    est.train(input_fn, steps=1)
    est.export_saved_model(os.path.join(model_dir, "export"), _receiver_fn)


def a_final_export_of_a_training_that_ends_early(model_dir, record):
    """After tfx#3804: is the final export made if the data, or a hook, ends training early?"""

    class Stops(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            run_context.request_stop()

    for name, count, hooks in (("data", 3, []), ("hook", None, [Stops()])):
        est = models.estimator(f"{model_dir}/{name}")
        train = tf.estimator.TrainSpec(models.batches(count), max_steps=50, hooks=hooks)
        exporter = tf.estimator.FinalExporter("final", _receiver_fn)
        spec = tf.estimator.EvalSpec(
            models.batches(2), exporters=[exporter], start_delay_secs=0, throttle_secs=0
        )
        record(name, tf.estimator.train_and_evaluate(est, train, spec), _exports(est))
