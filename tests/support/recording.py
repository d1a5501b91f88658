"""What processes that train together find, to be written as JSON."""

import tensorflow.compat.v1 as tf


class Recorder(tf.train.SessionRunHook):
    """Notes losses and the last values of all variables."""

    def __init__(self):
        self.losses, self.variables, self.step = {}, {}, 0

    def begin(self):
        self._step = tf.train.get_global_step()
        self._loss = tf.get_collection(tf.GraphKeys.LOSSES)[-1]
        self._variables = {v.op.name: v for v in tf.global_variables()}

    def before_run(self, run_context):
        return tf.train.SessionRunArgs([self._step, self._loss])

    def after_run(self, run_context, run_values):
        step, loss = run_values.results
        self.losses[int(step)] = float(loss)

    def end(self, session):
        self.variables = {k: v.tolist() for k, v in session.run(self._variables).items()}
        self.step = int(session.run(self._step))


def attempt(call) -> str:
    try:
        call()
    except Exception as error:  # whatever it is: tests look at its words
        return f"{type(error).__name__}: {error}"
    return ""
