"""Reports about scaffolds, their savers and what they initialize."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _with_scaffold(make):
    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        return spec._replace(scaffold=make(mode))

    return model_fn


def an_init_fn_of_one_argument(model_dir, record):
    """After tensorflow#8487, #20642: an init_fn that takes the session alone, or a bound method."""

    class Loader:
        def load(self, scaffold, session):
            record("loaded", type(scaffold).__name__)

        def wrong(self, session):
            record("never")

    for name in ("load", "wrong"):
        function = getattr(Loader(), name)
        fn = _with_scaffold(lambda mode, function=function: tf.train.Scaffold(init_fn=function))
        models.attempt(
            record, models.estimator(f"{model_dir}/{name}", fn).train, models.batches(), steps=1
        )


def what_is_not_in_the_saver(model_dir, record):
    """After tensorflow#17969: a saver of some variables, and an init_op for the others."""

    def make(mode):
        other = tf.get_variable("other", [], initializer=tf.ones_initializer(), trainable=False)
        kept = [v for v in tf.global_variables() if v is not other]
        init_op = tf.group(tf.variables_initializer([other]), tf.variables_initializer(kept))
        return tf.train.Scaffold(saver=tf.train.Saver(kept), init_op=init_op)

    est = models.estimator(model_dir, _with_scaffold(make))
    models.attempt(record, est.train, models.batches(), steps=1)
    models.attempt(record, est.train, models.batches(), steps=1)
    models.attempt(record, est.evaluate, models.batches(), steps=1)


def embeddings_that_are_fed_once(model_dir, record):
    """After tensorflow#11665, "Feeding word embeddings to a tf.estimator": init_feed_dict."""
    words = np.arange(6, dtype=np.float32).reshape(3, 2)

    def model_fn(features, labels, mode):
        given = tf.placeholder(tf.float32, [3, 2])
        table = tf.get_variable("words", initializer=given, trainable=mode == "train")
        looked_up = tf.nn.embedding_lookup(table, [0, 2])
        scaffold = tf.train.Scaffold(init_feed_dict={given: words})
        if mode == "infer":
            predictions = features["x"][:, tf.newaxis] + looked_up
            return tf.estimator.EstimatorSpec(mode, predictions=predictions, scaffold=scaffold)
        loss = models.loss_of(features, labels) + tf.reduce_mean(tf.square(looked_up))
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=models.descent(loss), scaffold=scaffold
        )

    est = models.estimator(model_dir, model_fn)
    for _ in range(2):
        est.train(models.batches(), steps=1)
        record(est.get_variable_value("words"))
    record(est.evaluate(models.batches(), steps=1))
    record(list(est.predict(models.batches(1))))


def what_wins_in_the_second_training(model_dir, record):
    """After tensorflow#12765: "will the session use scaffold.saver to restore, or init_fn?"."""

    def make(mode):
        load = tf.trainable_variables()[0].assign(7.0)

        def init_fn(scaffold, session):
            record("init_fn", mode)
            session.run(load)

        return tf.train.Scaffold(init_fn=init_fn)

    est = models.estimator(model_dir, _with_scaffold(make))
    for _ in range(2):
        est.train(models.batches(), steps=1)
        record(est.get_variable_value("w"))
    record(est.evaluate(models.batches(), steps=1))
    record(list(est.predict(models.batches(1))))


def checkpoints_that_a_saver_of_ones_own_keeps(model_dir, record):
    """After tensorflow#26136, models#6439, #7497: keep_checkpoint_max beside a saver."""

    def make(mode):
        return tf.train.Scaffold(saver=tf.train.Saver(save_relative_paths=True))

    for name, most, fn in (
        ("own", 1, _with_scaffold(make)),
        ("zero", 0, models.model_fn),
        ("none", None, models.model_fn),
        ("one", 1, models.model_fn),
    ):
        est = models.estimator(
            f"{model_dir}/{name}", fn, save_checkpoints_steps=1, keep_checkpoint_max=most
        )
        est.train(models.batches(), steps=7)
        record(name, tf.train.get_checkpoint_state(est.model_dir).all_model_checkpoint_paths[:1])


def savers_that_a_hook_finds(model_dir, record):
    """After tensorflow#13265: a CheckpointSaverHook that was made outside, without a saver."""

    def model_fn(features, labels, mode, params):
        spec = models.model_fn(features, labels, mode)
        for name in params["names"]:
            tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver(max_to_keep=2, name=name))
        tf.add_to_collection(tf.GraphKeys.SUMMARY_OP, tf.summary.scalar("only", spec.loss))
        tf.summary.scalar("not_this", spec.loss)
        return spec

    for names in ("", "a", "ab"):
        folder = f"{model_dir}/{names}"
        hook = tf.train.CheckpointSaverHook(f"{folder}/own", save_steps=1)
        given = {"names": names}
        est = models.estimator(folder, model_fn, given, save_checkpoints_steps=2)
        models.attempt(record, est.train, models.batches(), hooks=[hook], steps=4)
        models.attempt(record, est.evaluate, models.batches(), steps=1)
