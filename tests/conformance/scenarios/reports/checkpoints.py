"""Reports about checkpoints and warm starts."""

import glob
import os
import shutil

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _normalized(features, labels, mode):
    hidden = tf.expand_dims(features["x"], 1)
    hidden = tf.layers.batch_normalization(hidden, training=mode == "train", momentum=0.5)
    loss = tf.reduce_mean(tf.square(models.weight() * hidden[:, 0] - labels))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = models.descent(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def averages_of_a_normalization_by_their_names(model_dir, record):
    """After tensorflow#19903: a warm start leaves moving averages out, unless they are named."""
    first = models.trained(f"{model_dir}/first", 3, _normalized)
    for name, given in (
        ("all", ".*"),
        ("names", ["w", "batch_normalization/moving_mean"]),
        ("pattern", [".*moving_.*"]),
        ("nothing", None),
    ):
        settings = tf.estimator.WarmStartSettings(first.model_dir, vars_to_warm_start=given)
        est = models.estimator(f"{model_dir}/{name}", _normalized, warm_start_from=settings)
        est.train(models.batches(), steps=1)
        record(name, est.get_variable_value("batch_normalization/moving_mean"))


def the_same_assignments_twice(model_dir, record):
    """After BERT-NER#40: init_from_checkpoint runs twice in a model_fn, and in a scaffold_fn."""
    models.trained(f"{model_dir}/first", 2)

    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        path = tf.train.latest_checkpoint(f"{model_dir}/first")
        assignments = {"w": "w"}
        tf.train.init_from_checkpoint(path, assignments)

        def scaffold_fn():
            tf.train.init_from_checkpoint(path, assignments)
            return tf.train.Scaffold()

        return models.changed(spec, scaffold_fn=scaffold_fn)

    est = models.tpu_estimator(f"{model_dir}/second", model_fn)
    est.train(models.tpu_batches(), steps=1)
    record(est.get_variable_value("w"))
    record(est.evaluate(models.tpu_batches(), steps=1))


def an_initial_checkpoint_beside_a_later_one(model_dir, record):
    """After bert#330: INIT_CHECKPOINT names a checkpoint, and the latest is loaded."""
    first = models.trained(model_dir, 3, save_checkpoints_steps=1)
    path = os.path.join(model_dir, "model.ckpt-1")

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        tf.train.init_from_checkpoint(path, {"w": "w"})
        return spec

    for folder in (model_dir, f"{model_dir}/new"):
        est = models.estimator(folder, model_fn)
        models.attempt(record, est.evaluate, models.batches(), steps=1)
        est.train(models.batches(), steps=1)
        record(est.get_variable_value("w"))
    record(first.evaluate(models.batches(), steps=1, checkpoint_path=path))


def an_evaluation_before_the_save(model_dir, record):
    """After tensorflow#20992: a listener evaluates in before_save, to keep the best model only."""

    class Evaluates(tf.train.CheckpointSaverListener):
        def before_save(self, session, global_step_value):
            if global_step_value:
                record(int(global_step_value), est.evaluate(models.batches(), steps=1, name="own"))

    est = models.estimator(model_dir, save_checkpoints_steps=2)
    est.train(models.batches(), steps=4, saving_listeners=[Evaluates()])


def a_variable_that_only_the_evaluation_has(model_dir, record):
    """After OpenNMT-tf#365, tensorflow#22236: "Key ... not found in checkpoint"."""

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        if mode != "train":
            tf.get_variable("bridge/kernel", [2], initializer=tf.ones_initializer())
        return spec

    est = models.trained(model_dir, 1, model_fn)
    for call in (est.evaluate, lambda data: list(est.predict(data))):
        try:
            call(models.batches(1))
        except (ValueError, tf.errors.NotFoundError) as error:
            record(type(error).__name__, "bridge/kernel not found in checkpoint" in str(error))


def a_folder_that_was_moved(model_dir, record):
    """After tensorflow#9710, #12225: a model_dir is moved, and its checkpoint file is lost."""
    models.trained(f"{model_dir}/old", 2)
    for path in glob.glob(f"{model_dir}/old/events.*"):  # its name is that of the same second
        os.remove(path)
    shutil.move(f"{model_dir}/old", f"{model_dir}/moved")
    est = models.estimator(f"{model_dir}/moved")
    record(est.evaluate(models.batches(), steps=1)["global_step"])
    est.train(models.batches(), steps=1)
    os.remove(f"{model_dir}/moved/checkpoint")
    record(est.latest_checkpoint())
    models.attempt(record, est.evaluate, models.batches(), steps=1)
    path = f"{model_dir}/moved/model.ckpt-2"
    record(est.evaluate(models.batches(), steps=1, checkpoint_path=path)["global_step"])
    est.train(models.batches(), steps=1)


def an_average_of_checkpoints(model_dir, record):
    """After tensor2tensor's avg_checkpoints, #1415: a checkpoint that a script wrote."""
    models.trained(f"{model_dir}/first", 3, save_checkpoints_steps=1)
    paths = tf.train.get_checkpoint_state(f"{model_dir}/first").all_model_checkpoint_paths
    values = [tf.train.load_checkpoint(path).get_tensor("w") for path in paths]
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("w", initializer=np.float32(np.mean(values)))
        step = tf.Variable(0, name="global_step", trainable=False, dtype=tf.int64)
        session.run(tf.global_variables_initializer())
        os.makedirs(f"{model_dir}/averaged")
        tf.train.Saver([variable, step]).save(session, f"{model_dir}/averaged/model.ckpt", step)
    est = models.estimator(f"{model_dir}/averaged")
    record(est.evaluate(models.batches(), steps=1))
    est.train(models.batches(), steps=1)
    record(est.get_variable_value("w"), est.latest_checkpoint())
