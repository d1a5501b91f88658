import tensorflow.compat.v1 as tf
from scenarios import models


def _each(record, *makes):
    """Makes each in a graph; records the fields that are set, or the error."""
    for make in makes:
        with tf.Graph().as_default():
            try:
                spec = make()
                record([f for f in spec._fields if getattr(spec, f) not in (None, (), {})])
            except Exception as error:
                record(error)


def _loss():
    return tf.constant(1.0)


def what_training_needs(model_dir, record):
    Spec = tf.estimator.EstimatorSpec
    _each(
        record,
        lambda: Spec("train"),
        lambda: Spec("train", loss=_loss()),
        lambda: Spec("train", train_op=tf.no_op()),
        lambda: Spec("train", loss=_loss(), train_op=tf.no_op()),
        lambda: Spec("train", loss=_loss(), train_op=3),
        lambda: Spec("train", loss=_loss(), train_op="name"),
    )


def what_an_evaluation_needs(model_dir, record):
    Spec = tf.estimator.EstimatorSpec
    _each(
        record,
        lambda: Spec("eval"),
        lambda: Spec("eval", loss=_loss()),
        lambda: Spec("eval", loss=_loss(), eval_metric_ops={"m": _loss()}),
        lambda: Spec("eval", loss=_loss(), eval_metric_ops=[_loss()]),
        lambda: Spec("eval", loss=_loss(), eval_metric_ops={"m": (_loss(), _loss(), _loss())}),
        lambda: Spec("eval", loss=_loss(), eval_metric_ops={"m": (_loss(), tf.no_op())}),
        lambda: Spec("eval", loss=_loss(), eval_metric_ops={"m": (tf.no_op(), tf.no_op())}),
    )


def what_a_prediction_needs(model_dir, record):
    Spec = tf.estimator.EstimatorSpec
    export = tf.estimator.export
    _each(
        record,
        lambda: Spec("infer"),
        lambda: Spec("infer", predictions=_loss()),
        lambda: Spec("infer", predictions={"a": 3}),
        lambda: Spec("infer", predictions=[_loss()]),
        lambda: Spec("infer", predictions={"a": _loss()}, export_outputs=[1]),
        lambda: Spec("infer", predictions={"a": _loss()}, export_outputs={"a": 3}),
        lambda: Spec(
            "infer", predictions=_loss(), export_outputs={"a": export.PredictOutput(_loss())}
        ),
    )


def losses_of_every_kind(model_dir, record):
    Spec = tf.estimator.EstimatorSpec
    _each(
        record,
        lambda: Spec("eval", loss=3.0),
        lambda: Spec("eval", loss="loss"),
        lambda: Spec("eval", loss=tf.constant([1.0])),
        lambda: Spec("eval", loss=tf.constant([[1.0]])),
        lambda: Spec("eval", loss=tf.constant([1.0, 2.0])),
        lambda: Spec("eval", loss=tf.placeholder(tf.float32)),
        lambda: Spec("eval", loss=tf.placeholder(tf.float32, [None])),
        lambda: Spec("eval", loss=tf.no_op()),
    )


def hooks_and_scaffolds_of_every_kind(model_dir, record):
    Spec = tf.estimator.EstimatorSpec
    hook = models.Recording(record)
    _each(
        record,
        lambda: Spec("eval", loss=_loss(), evaluation_hooks=[hook]),
        lambda: Spec("eval", loss=_loss(), evaluation_hooks=hook),
        lambda: Spec("eval", loss=_loss(), evaluation_hooks=[3]),
        lambda: Spec("eval", loss=_loss(), training_hooks=(hook,)),
        lambda: Spec("eval", loss=_loss(), prediction_hooks=[None]),
        lambda: Spec("eval", loss=_loss(), scaffold=3),
        lambda: Spec("eval", loss=_loss(), training_chief_hooks=[3]),
    )


def modes_of_every_kind(model_dir, record):
    Spec = tf.estimator.EstimatorSpec
    _each(record, lambda: Spec("nothing", loss=_loss()), lambda: Spec(None, loss=_loss()))
    keys = tf.estimator.ModeKeys
    return [keys.TRAIN, keys.EVAL, keys.PREDICT]


def fields_and_replace(model_dir, record):
    with tf.Graph().as_default():
        spec = tf.estimator.EstimatorSpec("train", loss=_loss(), train_op=tf.no_op())
        record(list(spec._fields), isinstance(spec, tuple))
        other = tf.constant(2.0)
        record(spec._replace(loss=other).loss is other)
        spec._replace(mode="eval")


def tensors_of_another_graph(model_dir, record):
    with tf.Graph().as_default():
        foreign = tf.constant(1.0)
    Spec = tf.estimator.EstimatorSpec
    _each(
        record,
        lambda: Spec("eval", loss=foreign),
        lambda: Spec("infer", predictions=foreign),
        lambda: Spec("train", loss=_loss(), train_op=foreign),
    )


def model_fn_returns_something_else(model_dir, record):
    def model_fn(features, labels, mode):
        return models.loss_of(features, labels)

    models.estimator(model_dir, model_fn).train(models.batches(), steps=1)


def model_fn_returns_nothing(model_dir, record):
    def model_fn(features, labels, mode):
        models.loss_of(features, labels)

    models.estimator(model_dir, model_fn).train(models.batches(), steps=1)


def model_fn_raises(model_dir, record):
    def model_fn(features, labels, mode):
        raise ArithmeticError("raised by the model_fn")

    models.estimator(model_dir, model_fn).train(models.batches(), steps=1)


def model_fn_that_clears_the_global_step(model_dir, record):
    """A step that a model_fn makes itself, beside the estimator's."""

    def model_fn(features, labels, mode):
        tf.train.create_global_step()
        return models.model_fn(features, labels, mode)

    models.estimator(model_dir, model_fn).train(models.batches(), steps=1)


def tpu_specs(model_dir, record):
    Spec = tf.estimator.tpu.TPUEstimatorSpec
    record(list(Spec._fields))
    loss = _loss
    _each(
        record,
        lambda: Spec("train", loss=loss(), train_op=tf.no_op()),
        lambda: Spec("eval", loss=loss(), eval_metrics=(models.mean_error, [loss(), loss()])),
        lambda: Spec("eval", loss=loss(), eval_metrics=[1]),
        lambda: Spec("eval", loss=loss(), eval_metrics=(1, [loss()])),
        lambda: Spec("eval", loss=loss(), eval_metrics=(models.mean_error, loss())),
        lambda: Spec("eval", loss=loss(), eval_metrics=(models.mean_error, [loss()])),
        lambda: Spec("eval", loss=loss(), eval_metrics=(models.mean_error, {"other": loss()})),
        lambda: Spec("train", loss=loss(), train_op=tf.no_op(), host_call=3),
        lambda: Spec("train", loss=loss(), train_op=tf.no_op(), host_call=(lambda x: x, [3])),
        lambda: Spec("eval", loss=loss(), evaluation_hooks=3),
        lambda: Spec("eval", loss=loss(), training_hooks=[3]),
        lambda: Spec("train", loss=loss(), train_op=tf.no_op(), scaffold_fn=3),
    )


def a_tpu_spec_as_an_estimator_spec(model_dir, record):
    with tf.Graph().as_default():
        tf.train.create_global_step()
        tensor = tf.constant([1.0])
        spec = tf.estimator.tpu.TPUEstimatorSpec(
            "eval",
            loss=_loss(),
            eval_metrics=(models.mean_error, {"labels": tensor, "doubled": tensor}),
            host_call=(lambda x: tf.identity(x), [tensor]),
            scaffold_fn=lambda: record("scaffold_fn") or tf.train.Scaffold(),
        ).as_estimator_spec()
        record(type(spec).__name__, sorted(spec.eval_metric_ops), len(spec.evaluation_hooks))


def an_estimator_spec_in_a_tpu_estimator(model_dir, record):
    def model_fn(features, labels, mode, params):
        return models.model_fn(features, labels, mode)

    estimator = models.tpu_estimator(model_dir, model_fn)
    estimator.train(models.tpu_batches(), steps=1)
    record(estimator.evaluate(models.tpu_batches(), steps=1))
    return list(estimator.predict(models.tpu_batches(1)))


def a_tpu_spec_in_an_estimator(model_dir, record):
    def model_fn(features, labels, mode):
        return models.tpu_model_fn(features, labels, mode, {})

    models.estimator(model_dir, model_fn).train(models.batches(), steps=1)
