import os

import tensorflow.compat.v1 as tf
from scenarios import models


def keep_all_checkpoints(model_dir, record):
    for keep in (0, None):
        models.trained(f"{model_dir}{keep}", 7, save_checkpoints_steps=1, keep_checkpoint_max=keep)


def latest_checkpoint(model_dir, record):
    estimator = models.estimator(model_dir)
    record(estimator.latest_checkpoint())
    estimator.train(models.batches(), steps=2)
    return estimator.latest_checkpoint()


def latest_checkpoint_after_editing(model_dir, record):
    """The file `checkpoint` decides which is the latest."""
    estimator = models.trained(model_dir, steps=4, save_checkpoints_steps=2)
    with open(os.path.join(model_dir, "checkpoint"), "w") as file:
        file.write('model_checkpoint_path: "model.ckpt-2"\n')
    record(estimator.latest_checkpoint())
    record(estimator.evaluate(models.batches(), steps=1))
    estimator.train(models.batches(), max_steps=3)


def names_and_values_of_variables(model_dir, record):
    estimator = models.trained(model_dir)
    record(estimator.get_variable_names())
    return estimator.get_variable_value("w")


def names_without_a_checkpoint(model_dir, record):
    models.estimator(model_dir).get_variable_names()


def value_without_a_checkpoint(model_dir, record):
    models.estimator(model_dir).get_variable_value("w")


def value_of_a_missing_variable(model_dir, record):
    try:
        models.trained(model_dir).get_variable_value("nothing")
    except Exception as error:
        record(type(error).__name__, "nothing" in str(error))


def a_removed_model_dir(model_dir, record):
    models.trained(model_dir, steps=2)
    other = models.trained(model_dir, 2)
    tf.gfile.DeleteRecursively(model_dir)
    other.train(models.batches(), steps=1)
    return other.get_variable_value("global_step")


def a_variable_more_than_the_checkpoint(model_dir, record):
    models.trained(model_dir)

    def model_fn(features, labels, mode):
        tf.get_variable("new", [], initializer=tf.zeros_initializer())
        return models.model_fn(features, labels, mode)

    try:
        models.estimator(model_dir, model_fn).train(models.batches(), steps=1)
    except Exception as error:
        record(type(error).__name__, "new" in str(error), "not found in checkpoint" in str(error))


def a_variable_of_another_shape(model_dir, record):
    models.trained(model_dir)

    def model_fn(features, labels, mode):
        wide = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(wide * features["x"])
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    try:
        models.estimator(model_dir, model_fn).train(models.batches(), steps=1)
    except Exception as error:
        record(type(error).__name__, "shape" in str(error).lower())


def local_variables_are_not_saved(model_dir, record):
    def model_fn(features, labels, mode):
        local = tf.get_local_variable("local", [], initializer=tf.ones_initializer())
        plain = tf.get_variable("kept", [], trainable=False, initializer=tf.ones_initializer())
        outside = tf.get_variable("outside", [], collections=["mine", tf.GraphKeys.LOCAL_VARIABLES])
        loss = models.loss_of(features, labels) + local + plain + 0.0 * outside
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    models.estimator(model_dir, model_fn).train(models.batches(), steps=2)


def variables_in_scopes(model_dir, record):
    def model_fn(features, labels, mode):
        with tf.variable_scope("outer"):
            with tf.variable_scope("inner", reuse=tf.AUTO_REUSE):
                first = tf.get_variable("v", [], initializer=tf.ones_initializer())
                second = tf.get_variable("v", [], initializer=tf.ones_initializer())
        with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(2)):
            parts = tf.get_variable("p", [4], initializer=tf.ones_initializer())
        plain = tf.Variable(2.0, name="plain")
        again = tf.Variable(3.0, name="plain")
        total = first + second + tf.reduce_sum(parts) + plain + again
        loss = models.loss_of(features, labels) + total
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    estimator = models.trained(model_dir, 2, model_fn)
    return sorted(estimator.get_variable_names())


def layers_of_tf_layers(model_dir, record):
    def model_fn(features, labels, mode):
        x = tf.reshape(features["x"], [-1, 1])
        hidden = tf.layers.dense(x, 2, kernel_initializer=tf.ones_initializer())
        hidden = tf.layers.batch_normalization(hidden, training=mode == "train", momentum=0.5)
        out = tf.layers.dense(hidden, 1, name="out", kernel_initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(out - 1.0))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = models.descent(loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = models.trained(model_dir, 3, model_fn)
    return estimator.evaluate(models.batches(), steps=2)


def a_checkpoint_that_listeners_see(model_dir, record):
    """In after_save the file is there, and `latest_checkpoint` names it."""

    class Looks(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            path = tf.train.latest_checkpoint(model_dir)
            record(path, tf.train.load_variable(path, "global_step"), int(global_step_value))

    models.estimator(model_dir, save_checkpoints_steps=2).train(
        models.batches(), steps=4, saving_listeners=[Looks()]
    )


def all_checkpoints_evaluated(model_dir, record):
    estimator = models.trained(model_dir, steps=3, save_checkpoints_steps=1)
    state = tf.train.get_checkpoint_state(model_dir)
    return [
        estimator.evaluate(models.batches(), steps=1, checkpoint_path=path)
        for path in state.all_model_checkpoint_paths
    ]


def relative_model_dir(model_dir, record):
    """A relative directory stays relative in the state file's sense."""
    estimator = models.trained("relative/model")
    record(estimator.model_dir, estimator.latest_checkpoint())
    return open("relative/model/checkpoint").read()


def global_step_of_ones_own(model_dir, record):
    def model_fn(features, labels, mode):
        step = tf.train.get_or_create_global_step()
        record(step.op.name, step.dtype.base_dtype.name, str(step.shape))
        record([v.op.name for v in tf.global_variables()])
        record([v.op.name for v in tf.get_collection(tf.GraphKeys.GLOBAL_STEP)])
        return models.model_fn(features, labels, mode)

    models.estimator(model_dir, model_fn).train(models.batches(), steps=1)


def global_step_on_a_read(model_dir, record):
    class Reads(tf.train.SessionRunHook):
        def begin(self):
            self.step = tf.train.get_global_step()

        def end(self, session):
            record(tf.train.global_step(session, self.step))

    models.estimator(model_dir).train(models.batches(), hooks=[Reads()], steps=2)


def a_table_that_changes_in_place(model_dir, record):
    """A checkpoint holds the table of its step, even if steps run while it is written."""

    def model_fn(features, labels, mode):
        step = tf.train.get_global_step()
        table = tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.int64, default_value=-1, empty_key=-1, deleted_key=-2, name="table"
        )
        inserted = table.insert(tf.constant([1], tf.int64), tf.reshape(step + 1, [1]))
        with tf.control_dependencies([inserted]):
            op = tf.assign_add(step, 1)
        return tf.estimator.EstimatorSpec(mode, loss=models.weight() * 0.0, train_op=op)

    est = models.estimator(model_dir, model_fn, save_checkpoints_steps=3)
    est.train(models.batches(), steps=12)
    for step in (3, 6, 9, 12):
        reader = tf.train.NewCheckpointReader(f"{model_dir}/model.ckpt-{step}")
        [name] = [n for n in reader.get_variable_to_shape_map() if n.endswith("-values")]
        record(step, reader.get_tensor(name).max())
