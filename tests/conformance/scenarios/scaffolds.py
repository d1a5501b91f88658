import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _scaffold(make, modes=("train",)):
    def more(spec):
        return {"scaffold": make(spec)}

    given = {"train": "train", "eval": "evaluation", "infer": "prediction"}
    return models.spec_of(**{given[mode]: more for mode in modes})


def _noted(record, name):
    return tf.group(tf.py_func(lambda: record(name) or np.int32(0), [], tf.int32))


def init_op(model_dir, record):
    def make(spec):
        w = tf.trainable_variables()[0]
        with tf.control_dependencies([tf.global_variables_initializer()]):
            return tf.train.Scaffold(init_op=tf.group(w.assign(5.0), _noted(record, "init")))

    estimator = models.trained(model_dir, 1, _scaffold(make))
    estimator.train(models.batches(), steps=1)


def init_fn(model_dir, record):
    def make(spec):
        w = tf.trainable_variables()[0]
        value = tf.placeholder(tf.float32, [])
        load = w.assign(value)

        def fn(scaffold, session):
            record("init_fn", type(scaffold).__name__)
            session.run(load, {value: 4.0})

        return tf.train.Scaffold(init_fn=fn)

    estimator = models.trained(model_dir, 1, _scaffold(make))
    estimator.train(models.batches(), steps=1)


def default_local_init_op_in_an_evaluation(model_dir, record):
    def make(spec):
        default = tf.train.Scaffold.default_local_init_op()
        return tf.train.Scaffold(local_init_op=tf.group(default, _noted(record, "local")))

    return models.estimator(model_dir, _scaffold(make, ("eval",))).evaluate(
        models.batches(), steps=2
    )


def local_init_feed_dict(model_dir, record):
    def make(spec):
        value = tf.placeholder(tf.float32, [])
        local = tf.get_local_variable("local", [], initializer=tf.zeros_initializer())
        op = local.assign(value)
        tf.summary.scalar("local", local)
        return tf.train.Scaffold(local_init_op=op, local_init_feed_dict={value: 2.5})

    models.estimator(model_dir, _scaffold(make)).train(models.batches(), steps=1)


def _says_ready(record, field):
    def make(spec):
        ready = tf.py_func(lambda: record("ready") or np.array([], object), [], tf.string)
        return tf.train.Scaffold(**{field: ready})

    return make


def ready_op(model_dir, record):
    make = _says_ready(record, "ready_op")
    models.estimator(model_dir, _scaffold(make)).train(models.batches(), steps=1)


def ready_for_local_init_op(model_dir, record):
    make = _says_ready(record, "ready_for_local_init_op")
    models.estimator(model_dir, _scaffold(make)).train(models.batches(), steps=1)


def operations_say_ready(model_dir, record):
    """In each mode, and in collections too: what runs gives no value, which means ready."""

    def make(spec):
        init = tf.variables_initializer(tf.get_collection(tf.GraphKeys.METRIC_VARIABLES))
        tf.add_to_collection(tf.GraphKeys.READY_OP, _noted(record, "ready"))
        return tf.train.Scaffold(ready_for_local_init_op=tf.group(init, _noted(record, "local")))

    estimator = models.trained(model_dir, 1, _scaffold(make, ("train", "eval", "infer")))
    record(estimator.evaluate(models.batches(), steps=1))
    return len(list(estimator.predict(models.batches(1))))


def ready_op_in_an_evaluation(model_dir, record):
    make = _says_ready(record, "ready_op")
    return models.estimator(model_dir, _scaffold(make, ("eval",))).evaluate(
        models.batches(), steps=1
    )


def saver_with_fewer_variables(model_dir, record):
    def make(spec):
        tf.get_variable("not_saved", [], initializer=tf.zeros_initializer())
        kept = [v for v in tf.global_variables() if v.op.name != "not_saved"]
        return tf.train.Scaffold(saver=tf.train.Saver(kept, max_to_keep=2))

    models.trained(model_dir, 4, _scaffold(make), save_checkpoints_steps=1)


def saver_with_other_names(model_dir, record):
    def make(spec):
        names = {"renamed/" + v.op.name: v for v in tf.global_variables()}
        return tf.train.Scaffold(saver=tf.train.Saver(names))

    estimator = models.trained(model_dir, 2, _scaffold(make))
    estimator.train(models.batches(), steps=1)
    return sorted(estimator.get_variable_names())


def saver_of_moving_averages(model_dir, record):
    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        averages = tf.train.ExponentialMovingAverage(0.5)
        if mode == "train":
            with tf.control_dependencies([spec.train_op]):
                return spec._replace(train_op=averages.apply(tf.trainable_variables()))
        saver = tf.train.Saver(averages.variables_to_restore())
        return spec._replace(scaffold=tf.train.Scaffold(saver=saver))

    estimator = models.trained(model_dir, 3, model_fn)
    record(list(estimator.predict(models.batches(1))))
    return estimator.evaluate(models.batches(), steps=1)


def saver_max_to_keep(model_dir, record):
    def make(spec):
        return tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=3, sharded=True))

    est = models.estimator(
        model_dir, _scaffold(make), save_checkpoints_steps=1, keep_checkpoint_max=1
    )
    est.train(models.batches(), steps=5)


def copy_from_scaffold(model_dir, record):
    def make(spec):
        first = tf.train.Scaffold(init_fn=lambda scaffold, session: record("init_fn"))
        second = tf.train.Scaffold(
            copy_from_scaffold=first, local_init_op=tf.local_variables_initializer()
        )
        return second

    models.estimator(model_dir, _scaffold(make)).train(models.batches(), steps=1)


def a_scaffold_that_is_none(model_dir, record):
    models.estimator(model_dir, _scaffold(lambda spec: object())).train(models.batches(), steps=1)


def scaffold_fn_of_a_tpu_spec(model_dir, record):
    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)

        def scaffold_fn():
            record("scaffold_fn", mode)
            return tf.train.Scaffold()

        return models.changed(spec, scaffold_fn=scaffold_fn)

    estimator = models.tpu_estimator(model_dir, model_fn)
    estimator.train(models.tpu_batches(), steps=1)
    estimator.evaluate(models.tpu_batches(), steps=1)
    return len(list(estimator.predict(models.tpu_batches(1))))


def scaffold_fn_with_init_from_checkpoint(model_dir, record):
    """init_from_checkpoint in scaffold_fn, as BERT has it."""
    models.trained(model_dir + "_first")

    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)

        def scaffold_fn():
            tf.train.init_from_checkpoint(model_dir + "_first", {"w": "w"})
            return tf.train.Scaffold()

        return models.changed(spec, scaffold_fn=scaffold_fn)

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=1)


def finalized_scaffold(model_dir, record):
    def make(spec):
        scaffold = tf.train.Scaffold()

        class Looks(tf.train.SessionRunHook):
            def after_create_session(self, session, coord):
                parts = ("init_op", "local_init_op", "ready_op", "saver", "summary_op")
                record([getattr(scaffold, part) is not None for part in parts])

        make.hook = Looks()
        return scaffold

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        scaffold = make(spec)
        return spec._replace(scaffold=scaffold, training_hooks=[make.hook])

    models.estimator(model_dir, model_fn).train(models.batches(), steps=1)


def tables_are_initialized(model_dir, record):
    def model_fn(features, labels, mode):
        keys, values = tf.constant(["a", "b"]), tf.constant([10.0, 20.0])
        initializer = tf.lookup.KeyValueTensorInitializer(keys, values)
        table = tf.lookup.StaticHashTable(initializer, -1.0)
        looked_up = table.lookup(tf.constant(["b", "c"]))
        loss = models.loss_of(features, labels) + tf.reduce_sum(looked_up)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    estimator = models.trained(model_dir, 1, model_fn)
    return estimator.evaluate(models.batches(), steps=1)


def variables_not_initialized(model_dir, record):
    def make(spec):
        return tf.train.Scaffold(init_op=tf.train.get_global_step().initializer)

    models.estimator(model_dir, _scaffold(make)).train(models.batches(), steps=1)


def variables_not_initialized_that_a_ready_op_leaves_out(model_dir, record):
    """The same without a checkpoint before the first step, which looks at them too."""

    def make(spec):
        nothing = tf.constant([], tf.string)
        return tf.train.Scaffold(
            init_op=tf.train.get_global_step().initializer,
            ready_op=nothing,
            ready_for_local_init_op=nothing,
        )

    for saves in ({}, {"save_checkpoints_steps": None, "save_checkpoints_secs": None}):
        estimator = models.estimator(f"{model_dir}/{len(saves)}", _scaffold(make), **saves)
        try:
            estimator.train(models.batches(), steps=1)
        except tf.errors.FailedPreconditionError as error:
            record(
                [line.split("variable ")[0] for line in str(error).splitlines() if "TF1" in line]
            )
