"""TPUEstimator with use_tpu=False, and what its constructor refuses."""

import tensorflow.compat.v1 as tf
from scenarios import models


def batch_sizes_in_params(model_dir, record):
    def model_fn(features, labels, mode, params):
        record("model_fn", mode, {k: v for k, v in params.items() if k != "context"})
        return models.tpu_model_fn(features, labels, mode, params)

    def input_fn(params):
        record("input_fn", {k: v for k, v in params.items() if k != "context"})
        return models.tpu_batches(4)(params)

    estimator = models.tpu_estimator(
        model_dir, model_fn, {"own": 1}, train_batch_size=2, eval_batch_size=4, predict_batch_size=1
    )
    estimator.train(input_fn, steps=1)
    record(estimator.evaluate(input_fn, steps=1))
    return len(list(estimator.predict(input_fn)))


def context_in_params(model_dir, record):
    def model_fn(features, labels, mode, params):
        record("context" in params, sorted(params))
        return models.tpu_model_fn(features, labels, mode, params)

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=1)


def reserved_params(model_dir, record):
    for name in ("batch_size", "context", "use_tpu"):
        models.attempt(record, models.tpu_estimator, model_dir, params={name: 3})


def batch_sizes_that_are_missing(model_dir, record):
    """Off TPU a batch size may be left out; params then lack it."""
    estimator = models.tpu_estimator(
        model_dir, train_batch_size=None, eval_batch_size=None, predict_batch_size=None
    )
    estimator.train(models.tpu_batches(), steps=1)


def constructor_refuses(model_dir, record):
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
    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        if mode != "eval":
            return spec
        tensors = {"labels": labels, "doubled": 3.0 * features["x"]}
        return models.changed(spec, eval_metrics=(models.mean_error, tensors))

    record(models.tpu_estimator(model_dir).evaluate(models.tpu_batches(), steps=2))
    return models.tpu_estimator(model_dir, model_fn).evaluate(models.tpu_batches(), steps=2)


def cross_shard_optimizer(model_dir, record):
    def model_fn(features, labels, mode, params):
        loss = models.loss_of(features, labels)
        optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.5))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=2)


def input_fn_without_params(model_dir, record):
    models.tpu_estimator(model_dir).train(models.batches(), steps=1)


def model_fn_without_params(model_dir, record):
    def model_fn(features, labels, mode):
        return models.model_fn(features, labels, mode)

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=1)


def params_that_are_no_dict(model_dir, record):
    models.tpu_estimator(model_dir, params=3)


def params_of_hparams(model_dir, record):
    class HParams(dict):
        pass

    def model_fn(features, labels, mode, params):
        record(type(params).__name__, sorted(params))
        return models.tpu_model_fn(features, labels, mode, params)

    params = HParams(a=1)
    models.tpu_estimator(model_dir, model_fn, params).train(models.tpu_batches(), steps=1)


def a_subclass_that_overrides(model_dir, record):
    class Sub(tf.estimator.tpu.TPUEstimator):
        def evaluate(self, *args, **kwargs):
            return super().evaluate(*args, **kwargs)

    Sub(models.tpu_model_fn, config=models.tpu_config(model_dir), use_tpu=False, train_batch_size=2)


def properties_of_a_tpu_estimator(model_dir, record):
    estimator = models.tpu_estimator(model_dir, params={"a": 1})
    record(estimator.eval_dir("x"), estimator.params, estimator.latest_checkpoint())
    record(estimator.model_dir, type(estimator.config).__name__)
    record(isinstance(estimator, tf.estimator.Estimator))


def the_last_batch_of_a_tpu_estimator_is_smaller(model_dir, record):
    """Off TPU shapes may be dynamic."""

    def input_fn(params):
        x = [1.0, 2.0, 3.0]
        return tf.data.Dataset.from_tensor_slices(({"x": x}, x)).batch(params["batch_size"])

    estimator = models.tpu_estimator(model_dir)
    estimator.train(input_fn)
    record(estimator.evaluate(input_fn))
    return list(estimator.predict(input_fn))


def steps_of_a_tpu_estimator(model_dir, record):
    estimator = models.tpu_estimator(model_dir)
    for arguments in ({"steps": 0}, {"max_steps": -1}, {"steps": 1, "max_steps": 1}):
        models.attempt(record, estimator.train, models.tpu_batches(), **arguments)
    models.attempt(record, estimator.evaluate, models.tpu_batches(), steps=0)


def tpu_shard_functions_off_tpu(model_dir, record):
    from tensorflow.python.tpu import tpu_function

    def model_fn(features, labels, mode, params):
        record(tpu_function.get_tpu_context().number_of_shards)
        return models.tpu_model_fn(features, labels, mode, params)

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=1)


def a_model_fn_that_raises(model_dir, record):
    def model_fn(features, labels, mode, params):
        raise KeyError("fails")

    estimator = models.tpu_estimator(model_dir, model_fn, eval_on_tpu=False)
    models.attempt(record, estimator.train, models.tpu_batches(), steps=1)
    models.attempt(record, estimator.evaluate, models.tpu_batches(), steps=1)
    models.attempt(record, next, estimator.predict(models.tpu_batches()))


def predictions_that_are_given_up(model_dir, record):
    predictions = models.tpu_estimator(model_dir).predict(models.tpu_batches())
    record(next(predictions))
    predictions.close()
