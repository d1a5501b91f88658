"""TPUEstimator with use_tpu=False, and what its constructor refuses."""

import tensorflow.compat.v1 as tf
from scenarios import models


def reserved_params(model_dir, record):
    """params may not hold batch_size, nor context."""
    for name in ("batch_size", "context", "use_tpu"):
        try:
            models.tpu_estimator(model_dir, params={name: 3})
            record(name, "accepted")
        except ValueError as error:
            record(name, error)


def batch_sizes_that_are_missing(model_dir, record):
    """Off TPU a batch size may be left out; params then lack it."""
    estimator = models.tpu_estimator(
        model_dir, train_batch_size=None, eval_batch_size=None, predict_batch_size=None
    )
    estimator.train(models.tpu_batches(), steps=1)


def constructor_refuses(model_dir, record):
    """What the constructor refuses, in the original's words."""
    TPUEstimator, config = tf.estimator.tpu.TPUEstimator, models.tpu_config(model_dir)
    sizes = {"train_batch_size": 2}
    for arguments in (
        {"config": tf.estimator.RunConfig(), **sizes},
        {"config": None, **sizes},
        {"config": config, "use_tpu": True},
        {"config": config, "train_batch_size": "2"},
        {"config": config, "train_batch_size": 0},
        {"config": config, "eval_batch_size": 0, **sizes},
        {"config": config, "predict_batch_size": -1, **sizes},
        {"config": config, "params": {"batch_size": 2}, **sizes},
        {"config": config, "warm_start_from": 3, **sizes},
        {"config": config, "export_saved_model_api_version": 7, **sizes},
        {"config": config, "unknown": 7, **sizes},
    ):
        shown = {
            k: v if isinstance(v, (int, str, dict)) else type(v).__name__
            for k, v in arguments.items()
        }
        try:
            arguments = {"use_tpu": False, **arguments}
            TPUEstimator(models.tpu_model_fn, **arguments)
            record(shown, "accepted")
        except Exception as error:
            record(shown, error)


def eval_metrics_of_a_list(model_dir, record):
    """eval_metrics=(metric_fn, [tensors]), and of a dict."""

    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        if mode != "eval":
            return spec
        tensors = {"labels": labels, "doubled": 3.0 * features["x"]}
        return models.changed(spec, eval_metrics=(models.mean_error, tensors))

    record(models.tpu_estimator(model_dir).evaluate(models.tpu_batches(), steps=2))
    return models.tpu_estimator(model_dir, model_fn).evaluate(models.tpu_batches(), steps=2)


def evaluation_until_the_data_ends(model_dir, record):
    """Off TPU an evaluation may go to the end of the data."""
    return models.tpu_estimator(model_dir).evaluate(models.tpu_batches(3))
