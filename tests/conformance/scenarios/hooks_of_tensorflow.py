import tensorflow.compat.v1 as tf
from scenarios import models


def logging_tensor_hook(model_dir, record):
    hooks = [
        tf.train.LoggingTensorHook(["named"], every_n_iter=2),
        tf.train.LoggingTensorHook({"shown": "named:0"}, at_end=True),
        tf.train.LoggingTensorHook(
            {"x": "named:0"}, every_n_iter=3, formatter=lambda t: f"formatted {t['x']:.3f}"
        ),
    ]
    estimator = models.estimator(model_dir, models.named_loss_model_fn)
    estimator.train(models.batches(), hooks=hooks, steps=5)


def stop_at_step_hook(model_dir, record):
    estimator = models.estimator(model_dir)
    estimator.train(models.batches(), hooks=[tf.train.StopAtStepHook(num_steps=2)])
    estimator.train(models.batches(), hooks=[tf.train.StopAtStepHook(last_step=3)])


def final_ops_hook(model_dir, record):
    class Final(tf.train.FinalOpsHook):
        def begin(self):
            self._final_ops = {"step": tf.train.get_global_step(), "w": tf.trainable_variables()[0]}

    hook = Final(None)
    models.estimator(model_dir).train(models.batches(), hooks=[hook], steps=3)
    return hook.final_ops_values


def summary_saver_hook(model_dir, record):
    class Saves(tf.train.SummarySaverHook):
        def begin(self):
            self._summary_op = tf.summary.scalar("own", tf.trainable_variables()[0], collections=[])
            super().begin()

    hook = Saves(save_steps=2, output_dir=model_dir + "/own", summary_op=tf.no_op)
    hook._summary_op = None
    models.estimator(model_dir).train(models.batches(), hooks=[hook], steps=4)


def step_counter_hook(model_dir, record):
    hook = tf.train.StepCounterHook(every_n_steps=2, output_dir=model_dir + "/counted")
    models.estimator(model_dir).train(models.batches(), hooks=[hook], steps=5)


def profiler_hook(model_dir, record):
    hook = tf.train.ProfilerHook(save_steps=2, output_dir=model_dir)
    models.estimator(model_dir).train(models.batches(), hooks=[hook], steps=3)


def check_numerics_by_nan_tensor_hook(model_dir, record):
    """NanTensorHook(fail_on_nan_loss=False) warns and stops."""

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        nan = tf.log(1.0 - tf.cast(tf.train.get_global_step(), tf.float32), name="nan")
        hook = tf.train.NanTensorHook(nan, fail_on_nan_loss=False)
        return spec._replace(training_hooks=[hook])

    models.estimator(model_dir, model_fn).train(models.batches(), steps=6)


def hooks_that_count_seconds(model_dir, record):
    class Timed(tf.train.SessionRunHook):
        def begin(self):
            self.timer = tf.train.SecondOrStepTimer(every_steps=2)

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(tf.train.get_global_step())

        def after_run(self, run_context, run_values):
            step = int(run_values.results)
            if self.timer.should_trigger_for_step(step):
                _, steps = self.timer.update_last_triggered_step(step)
                record("due", step, steps)

    models.estimator(model_dir).train(models.batches(), hooks=[Timed()], steps=5)
