"""Scenarios: first values of variables."""

import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu

from ..model import Run, adam, minimized, scenario, spec_of, train_input


@scenario
def warm_start(run: Run) -> None:
    first = run.estimator()
    first.train(train_input, max_steps=5)
    saved = first.latest_checkpoint()
    again = run.estimator(run_config={"model_dir": f"{run.model_dir}2"}, warm_start_from=saved)
    again.train(train_input, max_steps=5)


@scenario
def init_from_checkpoint(run: Run) -> None:
    first = run.estimator()
    first.train(train_input, max_steps=5)
    saved = first.latest_checkpoint()

    def model(features, labels, mode, params):
        def scaffold_fn():
            tf.train.init_from_checkpoint(saved, {"dense/": "dense/"})
            return tf.train.Scaffold()

        spec = spec_of(features, labels, mode)
        return spec._replace(scaffold_fn=scaffold_fn) if mode == tpu.ModeKeys.TRAIN else spec

    again = run.estimator(model, run_config={"model_dir": f"{run.model_dir}2"})
    again.train(train_input, max_steps=5)


@scenario
def scaffold(run: Run) -> None:
    def model(features, labels, mode, params):
        def scaffold_fn():
            return tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=2))

        return spec_of(features, labels, mode)._replace(scaffold_fn=scaffold_fn)

    run.train_evaluate_predict(run.estimator(model), steps=50)


@scenario
def moving_averages(run: Run) -> None:
    def minimize(loss):
        train_op = adam(loss)
        averages = tf.train.ExponentialMovingAverage(0.9, tf.train.get_global_step())
        with tf.control_dependencies([train_op]):
            return averages.apply(tf.trainable_variables())

    run.train_evaluate_predict(run.estimator(minimized(minimize)))
