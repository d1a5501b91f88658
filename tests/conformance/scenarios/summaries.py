import tensorflow.compat.v1 as tf
from scenarios import models


def _with_summaries(make):
    def model_fn(features, labels, mode):
        extra = make(features, mode)
        spec = models.model_fn(features, labels, mode)
        if mode == "train" and extra is not None:
            with tf.control_dependencies([spec.train_op]):
                spec = spec._replace(train_op=tf.group(extra))
        return spec

    return model_fn


def scalar_summaries(model_dir, record):
    def make(features, mode):
        tf.summary.scalar("first", features["x"][0])
        with tf.name_scope("scope"):
            tf.summary.scalar("second", tf.train.get_or_create_global_step() * 2)

    models.estimator(model_dir, _with_summaries(make)).train(models.batches(), steps=5)


def other_summaries(model_dir, record):
    def make(features, mode):
        tf.summary.histogram("histogram", features["x"])
        tf.summary.image("image", tf.zeros([1, 2, 2, 1]))
        tf.summary.text("text", tf.constant("words"))
        tf.summary.tensor_summary("tensor", features["x"])
        tf.summary.audio("audio", tf.zeros([1, 8]), 8)

    models.estimator(model_dir, _with_summaries(make)).train(models.batches(), steps=1)


def summaries_across_calls(model_dir, record):
    estimator = models.trained(model_dir, 3)
    estimator.train(models.batches(), steps=3)


def save_summary_steps(model_dir, record):
    def make(features, mode):
        tf.summary.scalar("own", features["x"][0])

    est = models.estimator(
        model_dir, _with_summaries(make), save_summary_steps=3, log_step_count_steps=4
    )
    est.train(models.batches(), steps=9)


def save_summary_steps_none(model_dir, record):
    models.estimator(model_dir, save_summary_steps=None).train(models.batches(), steps=3)


def loss_summary_of_ones_own(model_dir, record):
    """A summary named `loss` in model_fn stands for the estimator's."""

    def make(features, mode):
        tf.summary.scalar("loss", tf.constant(42.0))

    models.estimator(model_dir, _with_summaries(make)).train(models.batches(), steps=3)


def summary_op_of_the_scaffold(model_dir, record):
    def more(spec):
        tf.summary.scalar("left_out", 1.0)
        own = tf.summary.scalar("own", 2.0, collections=[])
        return {"scaffold": tf.train.Scaffold(summary_op=own)}

    models.estimator(model_dir, models.spec_of(more)).train(models.batches(), steps=3)


def merged_summaries_in_a_hook(model_dir, record):
    def more(spec):
        tf.summary.scalar("one", 1.0)
        tf.summary.scalar("two", spec.loss)
        hook = tf.train.SummarySaverHook(
            save_steps=2, output_dir=model_dir + "/hook", summary_op=tf.summary.merge_all()
        )
        return {"training_hooks": [hook]}

    models.estimator(model_dir, models.spec_of(more)).train(models.batches(), steps=4)


def eval_summaries_by_a_hook(model_dir, record):
    def more(spec):
        tf.summary.scalar("batch_loss", spec.loss)
        hook = tf.train.SummarySaverHook(
            save_steps=1, output_dir=model_dir + "/eval_own", summary_op=tf.summary.merge_all()
        )
        return {"evaluation_hooks": [hook]}

    estimator = models.trained(model_dir, 2, models.spec_of(evaluation=more))
    estimator.evaluate(models.batches(), steps=3)


def _v2_scalar(folder, name="v2", condition=True):
    def make(features, mode):
        summary = tf.compat.v2.summary
        writer = summary.create_file_writer(folder, flush_millis=10)
        with writer.as_default(), summary.record_if(condition):
            step = tf.train.get_or_create_global_step()
            summary.scalar(name, features["x"][0], step=step)
        return [tf.summary.all_v2_summary_ops()]

    return make


def v2_writer_in_the_model_dir(model_dir, record):
    fn = _with_summaries(_v2_scalar(model_dir))
    models.estimator(model_dir, fn).train(models.batches(), steps=3)


def v2_summaries_switched_off(model_dir, record):
    fn = _with_summaries(_v2_scalar(model_dir + "/v2", condition=False))
    models.estimator(model_dir, fn).train(models.batches(), steps=3)


def v2_summaries_initialized_by_hand(model_dir, record):
    def model_fn(features, labels, mode):
        summary = tf.compat.v2.summary
        spec = models.model_fn(features, labels, mode)
        writer = summary.create_file_writer(model_dir + "/v2")
        with writer.as_default(), summary.record_if(True):
            step = tf.train.get_or_create_global_step()
            summary.scalar("by_hand", features["x"][0], step=step)
        init, flush = writer.init(), writer.flush()

        class Flushes(tf.train.SessionRunHook):
            def after_create_session(self, session, coord):
                session.run(init)

            def end(self, session):
                session.run(flush)

        train_op = tf.group(spec.train_op, *tf.summary.all_v2_summary_ops())
        return spec._replace(train_op=train_op, training_hooks=[Flushes()])

    models.estimator(model_dir, model_fn).train(models.batches(), steps=4)


def image_metric_is_written(model_dir, record):
    def more(spec):
        none = tf.no_op()
        summary = tf.summary.scalar("inside", 3.0, collections=[])
        ops = {"serialized": (summary, none), "array": (tf.constant([1.0, 2.0]), none)}
        return {"eval_metric_ops": ops}

    estimator = models.estimator(model_dir, models.spec_of(evaluation=more))
    return estimator.evaluate(models.batches(), steps=1)


def summaries_in_a_prediction(model_dir, record):
    def make(features, mode):
        tf.summary.scalar("first", features["x"][0])

    estimator = models.estimator(model_dir, _with_summaries(make))
    return len(list(estimator.predict(models.batches(1))))


def file_writer_of_the_script(model_dir, record):
    estimator = models.trained(model_dir, steps=1)
    writer = tf.summary.FileWriter(model_dir + "/own")
    for step in range(3):
        value = tf.Summary.Value(tag="own", simple_value=step / 2)
        writer.add_summary(tf.Summary(value=[value]), step)
    writer.close()
    return estimator.latest_checkpoint()


def summary_family_and_description(model_dir, record):
    def make(features, mode):
        tf.summary.scalar("value", features["x"][0], family="family")
        tf.summary.scalar("name with spaces", features["x"][0])

    models.estimator(model_dir, _with_summaries(make)).train(models.batches(), steps=1)


def summary_that_fails(model_dir, record):
    """A summary whose value cannot be computed ends training, in the step that is written."""

    def make(features, mode):
        tf.summary.histogram("nan", features["x"] * float("nan"))

    models.trained(model_dir, 3, _with_summaries(make), save_checkpoints_steps=1)
