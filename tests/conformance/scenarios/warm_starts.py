import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _two_variables(features, labels, mode):
    w = models.weight()
    bias = tf.get_variable("head/bias", [], initializer=tf.zeros_initializer())
    doubled = w * features["x"] + bias
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions=doubled)
    loss = tf.reduce_mean(tf.square(doubled - labels))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))


def _first(model_dir):
    folder = model_dir + "_first"
    models.estimator(folder, _two_variables).train(models.batches(), steps=3)
    return folder


def from_a_directory(model_dir, record):
    """Weights come from the latest checkpoint there; the step begins at 0."""
    folder = _first(model_dir)
    estimator = models.trained(model_dir, 1, _two_variables, warm_start_from=folder)
    estimator.train(models.batches(), steps=1)


def from_a_checkpoint(model_dir, record):
    path = _first(model_dir) + "/model.ckpt-3"
    models.trained(model_dir, 1, _two_variables, warm_start_from=path)


def of_some_variables(model_dir, record):
    """vars_to_warm_start is a regular expression."""
    settings = tf.estimator.WarmStartSettings(_first(model_dir), vars_to_warm_start="head.*")
    models.trained(model_dir, 1, _two_variables, warm_start_from=settings)


def of_a_list_of_variables(model_dir, record):
    settings = tf.estimator.WarmStartSettings(
        _first(model_dir), vars_to_warm_start=["head/bias", "global_step"]
    )
    models.trained(model_dir, 1, _two_variables, warm_start_from=settings)


def by_other_names(model_dir, record):
    folder = model_dir + "_first"
    models.trained(folder, steps=2)
    settings = tf.estimator.WarmStartSettings(
        folder, vars_to_warm_start="head.*", var_name_to_prev_var_name={"head/bias": "w"}
    )
    models.trained(model_dir, 1, _two_variables, warm_start_from=settings)


def a_missing_variable(model_dir, record):
    folder = model_dir + "_first"
    models.trained(folder, steps=2)
    estimator = models.estimator(model_dir, _two_variables, warm_start_from=folder)
    try:
        estimator.train(models.batches(), steps=1)
    except Exception as error:
        record(type(error).__name__, "head/bias" in str(error))


def a_missing_directory(model_dir, record):
    estimator = models.estimator(model_dir, warm_start_from=model_dir + "_nowhere")
    try:
        estimator.train(models.batches(), steps=1)
    except Exception as error:
        record(type(error).__name__)


def not_where_there_is_a_checkpoint(model_dir, record):
    folder = _first(model_dir)
    models.estimator(model_dir, _two_variables).train(models.batches(), steps=1)
    models.trained(model_dir, 1, _two_variables, warm_start_from=folder)


def in_evaluation_and_prediction(model_dir, record):
    folder = _first(model_dir)
    estimator = models.estimator(model_dir, _two_variables, warm_start_from=folder)
    record(list(estimator.predict(models.batches(1))))
    return estimator.evaluate(models.batches(), steps=1)


def of_the_wrong_type(model_dir, record):
    models.estimator(model_dir, warm_start_from=3)


def with_a_vocabulary(model_dir, record):
    for name, words in (("old", "a\nb\nc\n"), ("new", "c\nd\na\n")):
        with open(f"{name}.txt", "w") as file:
            file.write(words)

    def model_fn(features, labels, mode, params):
        table = tf.get_variable("table", [3, 2], initializer=params["first"])
        loss = tf.reduce_sum(table) * 0.0 + models.loss_of(features, labels)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    old = np.arange(6, dtype=np.float32).reshape(3, 2)
    first = {"first": tf.constant_initializer(old)}
    models.estimator(model_dir + "_old", model_fn, first).train(models.batches(), steps=1)
    vocabulary = tf.estimator.VocabInfo(
        new_vocab="new.txt",
        new_vocab_size=3,
        num_oov_buckets=0,
        old_vocab="old.txt",
        old_vocab_size=3,
        backup_initializer=tf.constant_initializer(9.0),
    )
    settings = tf.estimator.WarmStartSettings(
        model_dir + "_old", var_name_to_vocab_info={"table": vocabulary}
    )
    zeros = {"first": tf.zeros_initializer()}
    models.estimator(model_dir, model_fn, zeros, settings).train(models.batches(), steps=1)


def init_from_checkpoint(model_dir, record):
    folder = _first(model_dir)
    assignments = {"all": {"/": "/"}, "scope": {"head/": "head/"}, "name": {"w": "w"}}

    def model_fn(features, labels, mode, params):
        spec = _two_variables(features, labels, mode)
        tf.train.init_from_checkpoint(folder, assignments[params["which"]])
        return spec

    for which in assignments:
        models.trained(f"{model_dir}_{which}", 1, model_fn, {"which": which})


def from_an_export(model_dir, record):
    models.trained(model_dir + "_first", 3, _two_variables)

    def receiver_fn():
        x = tf.placeholder(tf.float32, [None])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    source = models.estimator(model_dir + "_first", _two_variables)
    path = source.export_saved_model(model_dir + "_export", receiver_fn).decode()
    models.trained(model_dir, 1, _two_variables, warm_start_from=path)
    tf.gfile.DeleteRecursively(model_dir + "_export")


def before_an_average_without_v2_behavior(model_dir, record):
    """An average that is made after `init_from_checkpoint` begins with the checkpoint's value."""
    tf.disable_v2_behavior()
    first = model_dir + "_first"

    def model_fn(features, labels, mode, config):
        weight = models.weight()
        if config.model_dir != first:
            tf.train.init_from_checkpoint(first, {"w": "w"})
        loss = tf.reduce_mean(tf.square(weight * features["x"] - labels))
        with tf.control_dependencies([models.descent(loss)]):
            train_op = tf.train.ExponentialMovingAverage(0.9).apply([weight])
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    models.estimator(first, model_fn).train(models.batches(), steps=3)
    models.estimator(model_dir, model_fn).train(models.batches(), steps=2)
