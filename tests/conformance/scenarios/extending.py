import tensorflow.compat.v1 as tf
from scenarios import models


def metrics_added(model_dir, record):
    def metric_fn(predictions, labels):
        return {"squares": tf.metrics.mean(tf.square(labels - predictions["doubled"]))}

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        return spec._replace(predictions={"doubled": models_weight() * features["x"]})

    def models_weight():
        with tf.variable_scope("", reuse=True):
            return models.weight()

    estimator = models.estimator(model_dir, model_fn)
    more = tf.estimator.add_metrics(estimator, metric_fn)
    more.train(models.batches(), steps=3)
    record(more.evaluate(models.batches(4)))
    record(estimator.evaluate(models.batches(4), name="bare"))


def metrics_of_unknown_arguments(model_dir, record):
    estimator = models.estimator(model_dir, models.model_fn)
    try:
        tf.estimator.add_metrics(estimator, lambda logits: {})
    except ValueError as error:
        record("not expected args" in str(error))
