import tensorflow.compat.v1 as tf
from scenarios import models


def _with_host_call(function, tensors_of=None, modes=("train",)):
    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        if mode not in modes:
            return spec
        make = tensors_of or (lambda s: [tf.reshape(tf.train.get_global_step(), [1])])
        return models.changed(spec, host_call=(function, make(spec)))

    return model_fn


def _noting(record):
    return lambda step: tf.py_func(models.noted(record), [step], tf.int32)


def called_once_per_step(model_dir, record):
    """The call sees the step before the train_op raises it: 0 .. N-1."""

    estimator = models.tpu_estimator(model_dir, _with_host_call(_noting(record)))
    estimator.train(models.tpu_batches(), steps=4)


def called_with_a_dict(model_dir, record):
    def function(loss, step):
        return tf.py_func(models.noted(record), [loss, step], tf.int32)

    def tensors(spec):
        step = tf.reshape(tf.train.get_global_step(), [1])
        return {"step": step, "loss": tf.reshape(spec.loss, [1])}

    estimator = models.tpu_estimator(model_dir, _with_host_call(function, tensors))
    estimator.train(models.tpu_batches(), steps=3)


def called_in_an_evaluation(model_dir, record):
    fn = _with_host_call(_noting(record), modes=("train", "eval"))
    estimator = models.tpu_estimator(model_dir, fn)
    estimator.train(models.tpu_batches(), steps=2)
    record("evaluation")
    return estimator.evaluate(models.tpu_batches(), steps=3)


def called_in_a_prediction(model_dir, record):
    estimator = models.tpu_estimator(model_dir, _with_host_call(_noting(record), modes=("infer",)))
    return list(estimator.predict(models.tpu_batches(2)))


def _writes(folder, condition=True):
    def function(step, loss):
        summary = tf.compat.v2.summary
        writer = summary.create_file_writer(folder, max_queue=1000, flush_millis=100000)
        with writer.as_default(), summary.record_if(condition):
            summary.scalar("loss_on_host", tf.reduce_mean(loss), step=step[0])
            summary.scalar("step_on_host", step[0], step=step[0])
            return tf.summary.all_v2_summary_ops()

    return function


def _step_and_loss(spec):
    return [tf.reshape(tf.train.get_global_step(), [1]), tf.reshape(spec.loss, [1])]


def writes_summaries(model_dir, record):
    """Summaries of every step arrive, though the writer's queue is long."""
    fn = _with_host_call(_writes(model_dir), _step_and_loss)
    models.tpu_estimator(model_dir, fn).train(models.tpu_batches(), steps=5)


def writes_nothing_if_so_told(model_dir, record):
    fn = _with_host_call(_writes(model_dir, condition=False), _step_and_loss)
    models.tpu_estimator(model_dir, fn).train(models.tpu_batches(), steps=3)


def variables_of_a_call(model_dir, record):
    """A local variable counts the calls; it is not in checkpoints."""

    def function(step):
        count = tf.get_local_variable("count", [], tf.int32, tf.zeros_initializer())
        with tf.control_dependencies([tf.assign_add(count, 1)]):
            return tf.py_func(models.noted(record), [step, count.read_value()], tf.int32)

    estimator = models.tpu_estimator(model_dir, _with_host_call(function))
    estimator.train(models.tpu_batches(), steps=3)
    estimator.train(models.tpu_batches(), steps=2)


def nothing_returned(model_dir, record):
    def function(step):
        record("called", len(step.shape))

    estimator = models.tpu_estimator(model_dir, _with_host_call(function))
    estimator.train(models.tpu_batches(), steps=2)


def a_call_that_fails(model_dir, record):
    def fails(step):
        record(step.tolist())
        raise ValueError("the call fails")

    def function(step):
        return tf.py_func(fails, [step], tf.int32)

    estimator = models.tpu_estimator(model_dir, _with_host_call(function))
    try:
        estimator.train(models.tpu_batches(), steps=3)
    except Exception as error:
        return type(error).__name__, "the call fails" in str(error)


def a_call_until_the_data_ends(model_dir, record):
    estimator = models.tpu_estimator(model_dir, _with_host_call(_noting(record)))
    estimator.train(models.tpu_batches(3))


def a_call_of_the_wrong_shape(model_dir, record):
    """A scalar in a host_call: off TPU it passes."""

    fn = _with_host_call(_noting(record), lambda spec: [tf.train.get_global_step()])
    models.tpu_estimator(model_dir, fn).train(models.tpu_batches(), steps=2)


def a_call_with_the_wrong_number(model_dir, record):
    estimator = models.tpu_estimator(model_dir, _with_host_call(lambda a, b: a))
    estimator.train(models.tpu_batches(), steps=1)


def a_call_that_is_not_a_pair(model_dir, record):
    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=spec.loss, train_op=spec.train_op, host_call=[lambda x: x]
        )

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=1)


def a_call_whose_function_is_none(model_dir, record):
    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=spec.loss, train_op=spec.train_op, host_call=("no", [spec.loss])
        )

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=1)


def host_call_with_train_summaries(model_dir, record):
    def tensors(spec):
        tf.summary.scalar("in_model_fn", spec.loss)
        return [tf.reshape(tf.train.get_global_step(), [1])]

    estimator = models.tpu_estimator(model_dir, _with_host_call(_noting(record), tensors))
    estimator.train(models.tpu_batches(), steps=4)


def host_call_beside_hooks(model_dir, record):
    models.tpu_estimator(
        model_dir,
        _with_host_call(lambda step: tf.py_func(models.noted(record, "call"), [step], tf.int32)),
    ).train(models.tpu_batches(), steps=2, hooks=[models.Recording(record)])


def _telling(raising=""):
    """A model_fn whose functions, and those of its specs, log a line; one raises an error."""

    def tell(name):
        tf.logging.info("in %s", name)
        if name == raising:
            raise ValueError(f"raised in {name}")

    def host_fn(doubled):
        tell("host_call")
        return tf.identity(doubled)

    def metric_fn(doubled):
        tell("metric_fn")
        return {"mean": tf.metrics.mean(doubled)}

    def scaffold_fn():
        tell("scaffold_fn")
        return tf.train.Scaffold()

    def model_fn(features, labels, mode, params):
        tell(f"model_fn, use_tpu={params['use_tpu']}")
        doubled = models.weight() * features["x"]
        loss = None if mode == "infer" else tf.reduce_mean(doubled)
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode,
            predictions={"doubled": doubled},
            loss=loss,
            train_op=models.descent(loss) if mode == "train" else None,
            eval_metrics=None if mode == "infer" else (metric_fn, [doubled]),
            host_call=(host_fn, [doubled]),
            scaffold_fn=scaffold_fn,
            export_outputs={"out": tf.estimator.export.PredictOutput({"doubled": doubled})},
        )

    return model_fn


def functions_of_a_spec_in_order(model_dir, record):
    """Before the line that model_fn is done."""
    estimator = models.tpu_estimator(model_dir, _telling())
    estimator.train(models.tpu_batches(), steps=1)
    estimator.evaluate(models.tpu_batches(), steps=1)
    return list(estimator.predict(models.tpu_batches(1)))


def functions_of_a_spec_in_exports(model_dir, record):
    def receive():
        x = tf.placeholder(tf.float32, [2])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    models.tpu_estimator(model_dir, _telling()).train(models.tpu_batches(), steps=1)
    for version in (1, 2):
        estimator = models.tpu_estimator(
            model_dir, _telling(), export_saved_model_api_version=version
        )
        models.attempt(record, estimator.export_saved_model, f"{model_dir}/{version}", receive)


def functions_of_a_spec_raise(model_dir, record):
    for name in ("metric_fn", "host_call", "scaffold_fn"):
        estimator = models.tpu_estimator(model_dir, _telling(name))
        models.attempt(record, estimator.train, models.tpu_batches(), steps=1)
        models.attempt(record, estimator.evaluate, models.tpu_batches(), steps=1)
        models.attempt(record, lambda e=estimator: next(e.predict(models.tpu_batches(1))))


def model_fn_of_a_tpu_estimator(model_dir, record):
    """It is called as for an export."""
    estimator = models.tpu_estimator(model_dir, _telling())
    tf.train.create_global_step()
    features = {"x": tf.constant([1.0])}
    spec = estimator.model_fn(features, tf.constant([2.0]), "eval", estimator.config)
    record(type(spec).__name__, sorted(spec.eval_metric_ops))


def labels_that_a_model_fn_does_not_take(model_dir, record):
    def of_tpu(features, mode, params):
        return models.tpu_model_fn(features, None, mode, params)

    estimator = models.tpu_estimator(model_dir, of_tpu)
    models.attempt(record, estimator.train, models.tpu_batches(), steps=1)
    plain = models.estimator(model_dir, lambda features, mode: None)
    models.attempt(record, plain.train, models.batches(), steps=1)
