"""What input_fn and model_fn share: variables, the step, collections, closures, names, seeds."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _model_fn(features, labels, mode):
    value = tf.cast(tf.reduce_sum(features), tf.float32)
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions={"value": tf.stack([value])})
    loss = tf.square(models.weight() - value)
    loss = tf.identity(loss, "the_loss")
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=models.descent(loss),
        eval_metric_ops={"mean": tf.metrics.mean(value)},
    )


def _position():
    """A variable that counts elements; tensors wait for the count."""
    position = tf.get_variable(
        "position", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False
    )
    return tf.identity(position.assign_add(1), "counted")


def a_position_in_a_variable(model_dir, record):
    est = models.estimator(model_dir, _model_fn)
    est.train(_position, steps=3)
    record(est.get_variable_value("position"), est.get_variable_value("w"))
    est = models.estimator(model_dir, _model_fn)
    est.train(_position, hooks=[models.Fetching(record, ["counted:0", "the_loss:0"])], steps=2)
    record(est.get_variable_value("position"), sorted(est.get_variable_names()))
    record(est.evaluate(_position, steps=2))
    predictions = est.predict(_position)
    record([next(predictions), next(predictions)])
    predictions.close()


def the_global_step_in_tensors(model_dir, record):
    def input_fn():
        return tf.cast(tf.train.get_global_step(), tf.float32) * 10.0

    est = models.estimator(model_dir, _model_fn)
    est.train(input_fn, hooks=[models.Fetching(record, "the_loss:0")], steps=4)
    est.train(input_fn, steps=3)
    record(est.evaluate(input_fn, steps=2), est.get_variable_value("w"))
    predictions = est.predict(input_fn)
    record(next(predictions))
    predictions.close()


def the_global_step_in_a_dataset(model_dir, record):
    """The original reads it when it takes an element."""

    def input_fn():
        step = tf.train.get_or_create_global_step()
        data = tf.data.Dataset.range(100)
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False  # else the original reads ahead
        data = data.with_options(options)
        return data.map(lambda i: tf.cast(i, tf.float32) + 100.0 * tf.cast(step, tf.float32))

    est = models.estimator(model_dir, _model_fn)
    hook = models.Fetching(record, ["the_loss:0", "IteratorGetNext:0"])
    est.train(input_fn, hooks=[hook], steps=4)
    record(est.evaluate(input_fn, steps=2))


def the_global_step_before_a_dataset(model_dir, record):
    """A tensor outside of the dataset's functions has its value when the session begins."""

    def input_fn():
        step = tf.cast(tf.train.get_global_step(), tf.float32)
        return tf.data.Dataset.range(100).map(lambda i: tf.cast(i, tf.float32) + 100.0 * step)

    est = models.estimator(model_dir, _model_fn)
    est.train(input_fn, hooks=[models.Fetching(record, "the_loss:0")], steps=2)
    est.train(input_fn, hooks=[models.Fetching(record, "the_loss:0")], steps=2)


def losses_summaries_and_collections(model_dir, record):
    def input_fn():
        features = tf.constant([1.0, 2.0])
        tf.losses.add_loss(tf.reduce_mean(features))
        tf.summary.scalar("of_the_input", tf.reduce_max(features))
        tf.add_to_collection("mine", features * 3.0)
        return features

    def model_fn(features, labels, mode):
        [mine] = tf.get_collection("mine")
        loss = tf.losses.get_total_loss() + models.weight() * tf.reduce_sum(mine)
        record(mode, len(tf.get_collection(tf.GraphKeys.LOSSES)))
        metrics = {"mine": tf.metrics.mean(mine)}
        train_op = models.descent(loss)
        return tf.estimator.EstimatorSpec(mode, None, loss, train_op, metrics)

    est = models.estimator(model_dir, model_fn, tf_random_seed=3, save_summary_steps=1)
    est.train(input_fn, steps=3)
    record(est.evaluate(input_fn, steps=1))


def tensors_tables_and_placeholders_by_closure(model_dir, record):
    made = {}

    def input_fn():
        keys = tf.constant(["a", "b"])
        initializer = tf.lookup.KeyValueTensorInitializer(keys, tf.constant([10.0, 20.0]))
        made["table"] = tf.lookup.StaticHashTable(initializer, -1.0)
        made["scale"] = tf.placeholder_with_default(2.0, [])
        made["drawn"] = tf.random.uniform([], seed=5)
        made["next"] = tf.data.make_one_shot_iterator(tf.data.Dataset.range(50)).get_next()
        return tf.constant(["a", "b"]), made["drawn"] + tf.cast(made["next"], tf.float32)

    def model_fn(features, labels, mode):
        looked_up = tf.reduce_sum(made["table"].lookup(features)) * made["scale"]
        rest = tf.identity(labels - made["drawn"], "rest")
        number = tf.identity(made["next"], "number")
        loss = models.weight() + looked_up + rest
        train_op = models.descent(loss)
        metrics = {"rest": tf.metrics.mean(rest), "number": tf.metrics.mean(number)}
        return tf.estimator.EstimatorSpec(mode, None, loss, train_op, metrics)

    class Scaling(tf.train.SessionRunHook):
        def before_run(self, run_context):
            fetches = ["rest:0", "number:0", made["next"]]
            return tf.train.SessionRunArgs(fetches, {made["scale"]: 3.0})

        def after_run(self, run_context, run_values):
            record(np.round(run_values.results, 5).tolist())

    est = models.estimator(model_dir, model_fn)
    est.train(input_fn, hooks=[Scaling()], steps=3)
    record(est.get_variable_value("w"), est.evaluate(input_fn, steps=2))


def _initial_values(model_dir, record, input_fn):
    """First values and dropout are drawn by the number of ops before them."""

    def model_fn(features, labels, mode):
        first = tf.get_variable("first", [3], initializer=tf.random_normal_initializer())
        dropped = tf.identity(tf.nn.dropout(tf.ones([8]), rate=0.5), "dropped")
        total = tf.reduce_sum(tf.cast(features, tf.float32))
        loss = tf.reduce_sum(first) + tf.reduce_sum(dropped) + 0 * total
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    est = models.estimator(model_dir, model_fn, tf_random_seed=11, save_summary_steps=0)
    est.train(input_fn, hooks=[models.Fetching(record, "dropped:0")], steps=2)
    record(est.get_variable_value("first").tolist())


def seeds_after_a_dataset(model_dir, record):
    data = tf.data.Dataset
    _initial_values(model_dir, record, lambda: data.range(20).shuffle(20).repeat().batch(4))


def seeds_after_tensors(model_dir, record):
    _initial_values(model_dir, record, lambda: tf.random.uniform([4]))


def seeds_after_an_iterator(model_dir, record):
    def input_fn():
        data = tf.data.Dataset.range(20).map(lambda i: i + 1).shuffle(5)
        return {"x": tf.data.make_one_shot_iterator(data).get_next()}["x"]

    _initial_values(model_dir, record, input_fn)


def seeds_after_arrays(model_dir, record):
    inputs = tf.estimator.inputs
    x = {"x": np.arange(20, dtype=np.float32), "a": np.arange(20, dtype=np.float32)}
    given = inputs.numpy_input_fn(x, x["x"], 4, num_epochs=None, shuffle=False)
    _initial_values(model_dir, record, lambda: given()[0]["x"])


def seeds_after_shuffled_arrays(model_dir, record):
    x = np.arange(20, dtype=np.float32)
    given = tf.estimator.inputs.numpy_input_fn(x, None, 4, num_epochs=2, shuffle=True)
    _initial_values(model_dir, record, given)


def seeds_after_a_queue(model_dir, record):
    def input_fn():
        x = tf.train.slice_input_producer([tf.range(20.0)], shuffle=False)[0]
        return tf.train.batch([x], 4)

    _initial_values(model_dir, record, input_fn)


def shuffles_by_the_graphs_seed(model_dir, record):
    def input_fn():
        tf.random.uniform([])
        return tf.data.Dataset.range(20).shuffle(20).repeat(2)

    est = models.estimator(model_dir, _model_fn, tf_random_seed=4, save_summary_steps=0)
    est.train(input_fn, hooks=[models.Fetching(record, "IteratorGetNext:0")], steps=6)


def names_of_ops(model_dir, record):
    def input_fn():
        with tf.name_scope("input"):
            x = tf.random.uniform([2], seed=1, name="x")
            tf.get_variable("unused", [2], initializer=tf.ones_initializer())
        return tf.data.Dataset.from_tensors(x).repeat()

    def model_fn(features, labels, mode):
        with tf.name_scope("input"):
            loss = tf.reduce_sum(features * 0.0 + 1.0) * models.weight()
        record([features.name, loss.name])
        names = [op.name for op in tf.get_default_graph().get_operations()]
        record([name for name in names if name.startswith(("input", "Iterator"))])
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    models.estimator(model_dir, model_fn).train(input_fn, steps=1)


def a_queue_of_python(model_dir, record):
    numbers = iter(range(7))

    def input_fn():
        queue = tf.FIFOQueue(3, [tf.int64], [[]])
        enqueue = queue.enqueue(tf.py_func(lambda: np.int64(next(numbers)), [], tf.int64))
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue]))
        return queue.dequeue()

    est = models.estimator(model_dir, _model_fn)
    try:
        est.train(input_fn)
    except Exception as error:
        record(type(error).__name__)
    else:
        record("ended")


def slices_of_a_producer(model_dir, record):
    def input_fn():
        x = tf.constant([1.0, 2.0, 3.0, 4.0])
        one, _ = tf.train.slice_input_producer([x, 10.0 * x], num_epochs=2, shuffle=False)
        return tf.train.batch([one], 2)

    est = models.estimator(model_dir, _model_fn, save_summary_steps=0)  # how full a queue is varies
    est.train(input_fn, hooks=[models.Fetching(record, "the_loss:0")])
    record(est.get_variable_value("global_step"), est.get_variable_value("w"))
    record(est.evaluate(input_fn), [p["value"].tolist() for p in est.predict(input_fn)])


def the_end_of_data_beside_a_branch(model_dir, record):
    """The gradient is taken every second step; the end of the data changes nothing."""

    def model_fn(features, labels, mode):
        weight = models.weight()
        step = tf.train.get_global_step()
        loss = tf.square(weight - tf.cast(features, tf.float32))
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        [(gradient, _)] = optimizer.compute_gradients(loss, [weight])
        update = tf.cond(
            tf.equal(step % 2, 0),
            lambda: tf.group(optimizer.apply_gradients([(gradient, weight)])),
            lambda: tf.no_op(),
        )
        count = tf.assign_add(tf.get_variable("turns", [], tf.int64, tf.zeros_initializer()), 1)
        with tf.control_dependencies([update]):
            train_op = tf.group(step.assign_add(1), count)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    est = models.estimator(model_dir, model_fn)
    est.train(lambda: tf.data.Dataset.range(5))
    for name in ("global_step", "w", "turns"):
        record(name, est.get_variable_value(name))


def the_step_of_an_evaluation(model_dir, record):
    est = models.estimator(model_dir, _model_fn)
    est.train(lambda: tf.data.Dataset.range(5), steps=1)

    def eval_step():
        return tf.get_collection(tf.GraphKeys.EVAL_STEP)

    data = tf.data.Dataset
    est.evaluate(lambda: data.range(5), hooks=[models.Fetching(record, eval_step)], steps=3)


def a_table_that_each_estimator_has_anew(model_dir, record):
    def model_fn(features, labels, mode):
        table = tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.float32, default_value=0.0, empty_key=-1, deleted_key=-2, name="seen"
        )
        key = tf.constant([1], tf.int64)
        before = tf.identity(table.lookup(key), "before")
        with tf.control_dependencies([before]):
            insert = table.insert(key, before + 1.0)
        loss = models.weight() + tf.reduce_sum(before)
        with tf.control_dependencies([insert]):
            train_op = models.descent(loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    for part in ("a", "b"):
        est = models.estimator(f"{model_dir}/{part}", model_fn)
        fetching = models.Fetching(record, "before:0", part)
        est.train(lambda: tf.data.Dataset.range(5), hooks=[fetching], steps=3)


def the_position_of_an_input_pipeline(model_dir, record):
    """It is in checkpoints of its own."""
    config = tf.estimator.RunConfig(save_checkpoints_steps=2, save_summary_steps=0)

    def trained(steps):
        est = tf.estimator.Estimator(_model_fn, model_dir, config)
        hooks = [
            tf.data.experimental.CheckpointInputPipelineHook(est),
            models.Fetching(record, "IteratorGetNext:0"),
        ]
        est.train(lambda: tf.data.Dataset.range(100).batch(2), hooks=hooks, steps=steps)

    trained(3)
    trained(3)


def what_a_hook_of_predict_is_told(model_dir, record):
    class Telling(tf.train.SessionRunHook):
        def before_run(self, run_context):
            fetches = run_context.original_args.fetches
            record(type(fetches).__name__, sorted(fetches), fetches["value"].name)

        def after_run(self, run_context, run_values):
            record(run_values.results)

    est = models.estimator(model_dir, _model_fn)
    record(list(est.predict(lambda: tf.data.Dataset.range(2), hooks=[Telling()])))


def a_variable_of_changing_shape(model_dir, record):
    def model_fn(features, labels, mode):
        seen = tf.Variable(tf.zeros([1]), validate_shape=False, trainable=False, name="seen")
        more = tf.concat([seen, [tf.cast(features, tf.float32)]], 0)
        keep = tf.assign(seen, more, validate_shape=False)
        loss = models.weight() + tf.reduce_sum(keep)
        with tf.control_dependencies([keep]):
            train_op = models.descent(loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    est = models.estimator(model_dir, model_fn)
    est.train(lambda: tf.data.Dataset.range(1, 9), steps=3)
    record(est.get_variable_value("seen").tolist())


def a_summary_of_what_is_drawn(model_dir, record):
    def model_fn(features, labels, mode):
        drawn = tf.random.uniform([], seed=3)
        tf.summary.scalar("drawn", drawn)
        loss = models.weight() * 0.0 + drawn
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    models.estimator(model_dir, model_fn).train(lambda: tf.data.Dataset.range(9), steps=5)


def plain_reads_without_v2_behavior(model_dir, record):
    """A ref variable's fetched value is that after the step."""
    tf.disable_v2_behavior()

    def model_fn(features, labels, mode):
        weight = models.weight()
        tf.identity(weight, "read")
        tf.add(weight, 0.0, "added")
        tf.summary.scalar("weight", weight)
        loss = tf.square(weight - tf.cast(features, tf.float32))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    est = models.estimator(model_dir, model_fn, save_summary_steps=3, log_step_count_steps=3)
    fetches = ["w:0", "read:0", "added:0", "global_step:0"]
    hooks = [models.Fetching(record, fetches), tf.train.LoggingTensorHook(["read"], every_n_iter=2)]
    est.train(lambda: tf.data.Dataset.range(1, 9), hooks=hooks)
