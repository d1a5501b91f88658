import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def evaluate_a_number_of_steps_with_a_fraction(model_dir, record):
    """Quotients, as in Python 2, below and above twenty steps."""
    estimator = models.trained(model_dir, 1)
    record(estimator.evaluate(models.batches(), steps=5 / 2))
    return estimator.evaluate(models.batches(40), steps=51 / 2)


def evaluate_a_hundred_steps(model_dir, record):
    """A long evaluation logs about ten times."""
    return models.trained(model_dir).evaluate(models.batches(), steps=25)


def evaluate_more_steps_than_data(model_dir, record):
    return models.trained(model_dir).evaluate(models.batches(2), steps=5)


def evaluate_no_data(model_dir, record):
    return models.trained(model_dir).evaluate(models.batches(0))


def evaluate_with_a_name(model_dir, record):
    """Events of a named evaluation lie in `eval_<name>`."""
    estimator = models.trained(model_dir)
    record(estimator.eval_dir(), estimator.eval_dir("test"))
    estimator.evaluate(models.batches(), steps=1)
    return estimator.evaluate(models.batches(), steps=1, name="test")


def evaluate_without_a_checkpoint(model_dir, record):
    """Without a checkpoint, variables have their first values, and the log says so."""
    return models.estimator(model_dir).evaluate(models.batches(), steps=2)


def evaluate_a_given_checkpoint(model_dir, record):
    estimator = models.trained(model_dir, steps=4, save_checkpoints_steps=2)
    path = model_dir + "/model.ckpt-2"
    return estimator.evaluate(models.batches(), steps=2, checkpoint_path=path)


def evaluate_a_missing_checkpoint(model_dir, record):
    path = model_dir + "/model.ckpt-77"
    try:
        models.trained(model_dir).evaluate(models.batches(), steps=1, checkpoint_path=path)
    except Exception as error:
        return type(error).__name__


def evaluate_zero_steps(model_dir, record):
    models.trained(model_dir).evaluate(models.batches(), steps=0)


def evaluate_without_metrics(model_dir, record):
    def model_fn(features, labels, mode):
        loss = models.loss_of(features, labels)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    return models.estimator(model_dir, model_fn).evaluate(models.batches(), steps=2)


def evaluate_twice(model_dir, record):
    """Each call begins its metrics anew, and adds an event of the same step."""
    estimator = models.trained(model_dir)
    return [estimator.evaluate(models.batches(), steps=2) for _ in range(2)]


def evaluation_does_not_train(model_dir, record):
    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        if mode != "eval":
            return spec
        w = next(v for v in tf.global_variables() if v.op.name == "w")
        with tf.control_dependencies([tf.assign(w, 100.0)]):
            return spec._replace(loss=tf.identity(spec.loss))

    estimator = models.trained(model_dir, 2, model_fn)
    estimator.evaluate(models.batches(), steps=2)
    return estimator.get_variable_value("w")


def metrics_of_many_kinds(model_dir, record):
    def model_fn(features, labels, mode):
        x, loss = features["x"], models.loss_of(features, labels)
        positive, predicted = x > 0.3, x > 0.55
        metrics = {
            "accuracy": tf.metrics.accuracy(positive, predicted),
            "auc": tf.metrics.auc(positive, x),
            "precision": tf.metrics.precision(positive, predicted),
            "recall": tf.metrics.recall(positive, predicted),
            "mean": tf.metrics.mean(x),
            "mean_tensor": tf.metrics.mean_tensor(tf.stack([x[0], 2 * x[0]])),
            "rmse": tf.metrics.root_mean_squared_error(labels, x),
            "false": tf.metrics.false_positives(positive, predicted),
            "nested/name": tf.metrics.mean(2 * x),
        }
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    return models.estimator(model_dir, model_fn).evaluate(models.batches(4))


def metrics_of_several_types(model_dir, record):
    """A metric may be an int, a bool, a string, or a big array; which of them are written."""

    def model_fn(features, labels, mode):
        loss, none = models.loss_of(features, labels), tf.no_op()
        metrics = {
            "int": (tf.constant(3), none),
            "bool": (tf.constant(True), none),
            "text": (tf.constant("words"), none),
            "image": (tf.zeros([4, 3]), none),
            "double": (tf.constant(0.1, tf.float64), none),
            "half": (tf.constant(0.5, tf.float16), none),
        }
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    return models.estimator(model_dir, model_fn).evaluate(models.batches(2))


def metric_that_is_a_keras_metric(model_dir, record):
    def model_fn(features, labels, mode):
        mean = tf.keras.metrics.Mean()
        mean.update_state(features["x"])
        loss = models.loss_of(features, labels)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mean": mean})

    return models.estimator(model_dir, model_fn).evaluate(models.batches(4))


def metrics_with_the_estimators_own_names(model_dir, record):
    def model_fn(features, labels, mode, params):
        loss = models.loss_of(features, labels)
        metrics = {params["name"]: tf.metrics.mean(7.0)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    for name in ("loss", "global_step"):
        estimator = models.estimator(model_dir, model_fn, {"name": name})
        models.attempt(record, estimator.evaluate, models.batches(1))


def metric_without_update_op(model_dir, record):
    def model_fn(features, labels, mode):
        loss = models.loss_of(features, labels)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"m": loss})

    return models.estimator(model_dir, model_fn).evaluate(models.batches(1))


def updates_of_metrics_are_counted(model_dir, record):
    def model_fn(features, labels, mode):
        def note(what):
            return lambda: record(what) or np.float32(1)

        value = tf.py_func(note("value"), [], tf.float32)
        update = tf.py_func(note("update"), [], tf.float32)
        value.set_shape([])
        loss = models.loss_of(features, labels)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"m": (value, update)})

    return models.estimator(model_dir, model_fn).evaluate(models.batches(3))


def nan_in_an_evaluation(model_dir, record):
    def model_fn(features, labels, mode):
        loss = models.loss_of(features, labels) * np.nan
        return tf.estimator.EstimatorSpec(mode, loss=loss)

    return models.estimator(model_dir, model_fn).evaluate(models.batches(2))


def evaluation_of_a_graph_without_input(model_dir, record):
    def model_fn(features, labels, mode):
        loss = tf.square(models.weight() - 1.0)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={})

    return models.estimator(model_dir, model_fn).evaluate(models.batches(), steps=4)


def float_types_in_the_saving_line(model_dir, record):
    """ "Saving dict for global step": numbers have the digits of their type."""

    def model_fn(features, labels, mode):
        loss = models.loss_of(features, labels)
        metrics = {
            "third": tf.metrics.mean(tf.constant(1.0 / 3.0)),
            "large": tf.metrics.mean(tf.constant(123456.789)),
            "small": tf.metrics.mean(tf.constant(1.5e-7)),
            "whole": tf.metrics.mean(tf.constant(2.0)),
        }
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    models.estimator(model_dir, model_fn).evaluate(models.batches(1))


def summaries_in_an_evaluation(model_dir, record):
    def model_fn(features, labels, mode):
        tf.summary.scalar("seen", features["x"][0])
        return models.model_fn(features, labels, mode)

    models.estimator(model_dir, model_fn).evaluate(models.batches(4))


def evaluation_of_ints(model_dir, record):
    def model_fn(features, labels, mode, params):
        loss = tf.cast(models.loss_of(features, labels) * 10, params["type"])
        return tf.estimator.EstimatorSpec(mode, loss=loss)

    for name in ("float64", "float16", "int32"):
        try:
            est = models.estimator(model_dir + name, model_fn, {"type": name})
            record(name, est.evaluate(models.batches(2)))
        except (TypeError, ValueError) as error:
            record(name, type(error).__name__)


def metric_values_that_read_the_input(model_dir, record):
    """The read after the last batch fails, where steps left none."""

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        first = features["x"][0], tf.no_op()
        return spec if mode == "train" else spec._replace(eval_metric_ops={"first": first})

    def from_queue():
        queue = tf.train.input_producer([[1.0], [2.0]], num_epochs=1, shuffle=False)
        x = queue.dequeue()
        return {"x": x}, x

    estimator = models.trained(model_dir, fn=model_fn)
    record(estimator.evaluate(models.batches(3), steps=2))
    for input_fn, steps in ((models.batches(2), None), (models.batches(2), 2), (from_queue, None)):
        try:
            estimator.evaluate(input_fn, steps)
        except tf.errors.OutOfRangeError as error:
            text = str(error)
            record("End of sequence" in text, "is closed and has insufficient elements" in text)
