import tensorflow.compat.v1 as tf
from scenarios import models


def _eval_spec(**more):
    arguments = {"steps": 2, "start_delay_secs": 0, "throttle_secs": 0, **more}
    return tf.estimator.EvalSpec(models.batches(), **arguments)


def _receiver_fn():
    x = tf.placeholder(tf.float32, [None], name="served")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def train_and_evaluate_with_fractions(model_dir, record):
    """Quotients, as in Python 2, for max_steps and steps."""
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=7 / 2)
    return tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec(steps=3 / 2))


def specs_refuse(model_dir, record):
    good = models.batches()
    for make in (
        lambda: tf.estimator.TrainSpec(3),
        lambda: tf.estimator.TrainSpec(good, max_steps=0),
        lambda: tf.estimator.TrainSpec(good, hooks=[3]),
        lambda: tf.estimator.TrainSpec(good, saving_listeners=[3]),
        lambda: tf.estimator.EvalSpec(3),
        lambda: tf.estimator.EvalSpec(good, steps=0),
        lambda: tf.estimator.EvalSpec(good, name=3),
        lambda: tf.estimator.EvalSpec(good, name=""),
        lambda: tf.estimator.EvalSpec(good, hooks=[3]),
        lambda: tf.estimator.EvalSpec(good, exporters=[3]),
        lambda: tf.estimator.EvalSpec(good, start_delay_secs=-1),
        lambda: tf.estimator.EvalSpec(good, throttle_secs=-1),
        lambda: tf.estimator.EvalSpec(
            good, exporters=[tf.estimator.FinalExporter("a", _receiver_fn)] * 2
        ),
    ):
        models.attempt(record, make)


def specs_have_fields(model_dir, record):
    train_spec = tf.estimator.TrainSpec(models.batches())
    eval_spec = tf.estimator.EvalSpec(models.batches())
    record(list(train_spec._fields), list(eval_spec._fields))
    record(train_spec.max_steps, eval_spec.steps, eval_spec.name, eval_spec.throttle_secs)
    return [eval_spec.start_delay_secs, eval_spec.exporters, train_spec.hooks]


def early_stopping_of_ones_own(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    asked = []

    def should_stop():
        asked.append(1)
        return len(asked) >= 3

    hook = tf.estimator.experimental.make_early_stopping_hook(
        estimator, should_stop, run_every_secs=None, run_every_steps=2
    )
    estimator.train(models.batches(), steps=20, hooks=[hook])
    return [len(asked), sorted(estimator.get_variable_names())]


def an_error_in_the_schedule(model_dir, record):
    def model_fn(features, labels, mode):
        if mode == "eval":
            raise KeyError("no evaluation")
        return models.model_fn(features, labels, mode)

    estimator = models.estimator(model_dir, model_fn, save_checkpoints_steps=2)
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=4)
    tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec())


def eval_dir_with_a_name(model_dir, record):
    estimator = models.estimator(model_dir, save_checkpoints_steps=2)
    hook = tf.estimator.experimental.stop_if_lower_hook(
        estimator,
        "loss",
        0.5,
        eval_dir=estimator.eval_dir("x"),
        run_every_secs=None,
        run_every_steps=1,
    )
    train_spec = tf.estimator.TrainSpec(models.batches(), max_steps=12, hooks=[hook])
    return tf.estimator.train_and_evaluate(estimator, train_spec, _eval_spec(name="x"))
