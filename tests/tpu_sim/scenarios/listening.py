"""Scenarios: hooks and host calls."""

import pathlib

import tensorflow as tf2
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as estimator_lib

from ..model import Run, changed, eval_input, scenario, spec_of, train_input


@scenario
def host_call(run: Run) -> None:
    def model(features, labels, mode, params):
        def on_host(step, losses, hidden):
            with tf2.summary.create_file_writer(run.model_dir).as_default():
                with tf2.summary.record_if(True):
                    tf2.summary.scalar("mean_loss", tf.reduce_mean(losses), step=step[0])
                    tf2.summary.scalar("mean_hidden", tf.reduce_mean(hidden), step=step[0])
            return tf.summary.all_v2_summary_ops()

        spec = spec_of(features, labels, mode)
        if mode != tpu.ModeKeys.TRAIN:
            return spec
        hidden = tf.get_default_graph().get_tensor_by_name("dense/Relu:0")
        step = tf.reshape(tf.train.get_global_step(), [1])
        return spec._replace(host_call=(on_host, [step, tf.reshape(spec.loss, [1]), hidden]))

    run.train_evaluate_predict(run.estimator(model))


@scenario
def host_call_now_and_then(run: Run) -> None:
    written = pathlib.Path(run.model_dir + ".calls.txt")

    def model(features, labels, mode, params):
        def on_host(step, ids):
            line = tf.strings.format("{} {}\n", [step[0], tf.size(ids)])
            return tf.print(line, output_stream=f"file://{written}")

        spec = spec_of(features, labels, mode)
        if mode != tpu.ModeKeys.TRAIN:
            return spec
        step = tf.reshape(tf.train.get_global_step(), [1])
        return spec._replace(host_call=(on_host, [step, features["id"]]))

    estimator = run.estimator(model, tpu_config={"experimental_host_call_every_n_steps": 2})
    estimator.train(train_input, max_steps=10)
    run.see("calls", written.read_text().split("\n"))


@scenario
def hook_that_fetches(run: Run) -> None:
    class Fetch(tf.train.SessionRunHook):
        def begin(self):
            self.tensor = tf.get_default_graph().get_tensor_by_name("dense/Relu:0")
            self.seen = []

        def before_run(self, run_context):
            return tf.train.SessionRunArgs([self.tensor, tf.train.get_global_step()])

        def after_run(self, run_context, run_values):
            hidden, step = run_values.results
            self.seen.append([hidden.sum(), step])

    hook = Fetch()
    run.train_evaluate_predict(run.estimator(), hooks=[hook])
    run.see("fetched", hook.seen)


@scenario
def hook_on_a_variable_of_its_own(run: Run) -> None:
    """It fetches what only it needs, of a variable that no step uses."""

    def change(output, hidden):
        weights = tf.get_variable(
            "unused", [8, 1], initializer=tf.ones_initializer(), trainable=False
        )
        tf.add_to_collection("mine", tf.reduce_sum(tf.matmul(hidden, weights)))
        return output

    class Ask(tf.train.SessionRunHook):
        def begin(self):
            [self.tensor] = tf.get_collection("mine")
            self.seen = []

        def after_run(self, run_context, run_values):
            self.seen.append(run_context.session.run(self.tensor))

    hook = Ask()
    run.train_evaluate_predict(run.estimator(changed(change)), hooks=[hook])
    run.see("asked", hook.seen)


@scenario
def hooks_of_tensorflow(run: Run) -> None:
    class Listener(tf.train.CheckpointSaverListener):
        def __init__(self):
            self.seen = []

        def after_save(self, session, global_step_value):
            self.seen.append(global_step_value)

    listener = Listener()
    estimator = run.estimator()
    hooks = [
        tf.train.StopAtStepHook(last_step=18),
        tf.train.StepCounterHook(every_n_steps=10, output_dir=run.model_dir),
        tf.train.LoggingTensorHook(["dense/Relu:0"], every_n_iter=5),
        tf.train.NanTensorHook("mean_squared_error/value:0"),
    ]
    estimator.train(train_input, max_steps=100, hooks=hooks, saving_listeners=[listener])
    run.see("saved", listener.seen)


@scenario
def summaries_of_the_model(run: Run) -> None:
    """Strings, which cores do not have: the host makes them of the first replica's tensors."""

    def change(output, hidden):
        tf.summary.scalar("mean_hidden", tf.reduce_mean(hidden))
        tf.summary.histogram("hidden", hidden)
        return output

    estimator = run.estimator(changed(change), run_config={"save_summary_steps": 5})
    run.train_evaluate_predict(estimator)


@scenario
def in_memory_evaluation(run: Run) -> None:
    estimator = run.estimator()
    hook = estimator_lib.experimental.InMemoryEvaluatorHook(
        estimator, eval_input, steps=4, every_n_iter=10
    )
    estimator.train(train_input, max_steps=20, hooks=[hook])
