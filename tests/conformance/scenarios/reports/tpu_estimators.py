"""Reports about TPUEstimator with use_tpu=False."""

import tensorflow.compat.v1 as tf
from scenarios import models

_tpu = tf.estimator.tpu


def sizes_that_are_not_given(model_dir, record):
    """After tensorflow#30658: an estimator that only predicts, without a train_batch_size."""
    models.trained(model_dir, 1)
    for sizes in ({}, {"predict_batch_size": 2}, {"train_batch_size": None, "eval_batch_size": 3}):
        try:
            est = _tpu.TPUEstimator(
                models.tpu_model_fn, config=models.tpu_config(model_dir), use_tpu=False, **sizes
            )
            record(sorted(est.params))
            record(len(list(est.predict(lambda params: models.batches(1)()))))
        except Exception as error:
            record(type(error).__name__, str(error)[:80])


def predictions_that_are_a_tensor(model_dir, record):
    """After bert#244: "TPUEstimatorSpec.predictions must be dict of Tensors"."""

    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        if mode != "infer":
            return spec
        return _tpu.TPUEstimatorSpec(mode, predictions=spec.predictions["doubled"])

    est = models.tpu_estimator(model_dir, model_fn)
    est.train(models.tpu_batches(), steps=1)
    models.attempt(record, lambda: record(list(est.predict(models.tpu_batches(1)))))


def steps_in_the_place_of_keys(model_dir, record):
    """After simclr#61: predict(input_fn, eval_steps, ...), where keys are expected."""
    est = models.tpu_estimator(model_dir)
    est.train(models.tpu_batches(), steps=1)
    path = est.latest_checkpoint()
    for given in ((2,), ("doubled",), (["doubled", "other"],), ("other",), (None, None)):
        try:
            record(list(est.predict(models.tpu_batches(1), *given, checkpoint_path=path)))
        except Exception as error:
            record(type(error).__name__, str(error)[:100])


def more_checkpoints_than_five(model_dir, record):
    """After bert#454, #115: keep_checkpoint_max of a TPU RunConfig, each checkpoint evaluated."""
    config = models.tpu_config(model_dir, save_checkpoints_steps=1, keep_checkpoint_max=8)
    est = models.tpu_estimator(model_dir, config=config)
    est.train(models.tpu_batches(), max_steps=7)
    for path in tf.train.get_checkpoint_state(model_dir).all_model_checkpoint_paths:
        record(est.evaluate(models.tpu_batches(), steps=1, checkpoint_path=path))


def nothing_before_the_first_prediction(model_dir, record):
    """After bert#799, tensorflow#41014: predict is lazy, and is called one after the other."""
    est = models.tpu_estimator(model_dir)
    est.train(models.tpu_batches(), steps=1)
    called = []

    def input_fn(params):
        called.append(params["batch_size"])
        return models.tpu_batches(2)(params)

    first, second = est.predict(input_fn), est.predict(input_fn, yield_single_examples=False)
    record(called)
    record(list(first), called)
    record(list(second), called)


def loops_that_do_not_divide_the_steps(model_dir, record):
    """After tpu#516, automl#333: iterations_per_loop above the steps, saves between the loops."""
    config = models.tpu_config(
        model_dir,
        tpu_config=_tpu.TPUConfig(iterations_per_loop=4, num_shards=None),
        save_checkpoints_steps=3,
        log_step_count_steps=100,
    )
    est = models.tpu_estimator(model_dir, config=config)
    est.train(models.tpu_batches(), max_steps=6, hooks=[models.Recording(record)])
    record(est.evaluate(models.tpu_batches(3)))
