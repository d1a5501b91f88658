"""One process of a cluster: runs a scenario and writes down what it found.

python worker.py SCENARIO RESULT_FILE ARGUMENTS, with TF_CONFIG in the environment.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "estimator"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import legacy_models
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu

GLOBAL_BATCH = 16


class Recorder(tf.train.SessionRunHook):
    """Notes losses and the last values of all variables; has its turn as often as it may."""

    def __init__(self, every: int = 1):
        self.losses: dict[int, float] = {}
        self.variables: dict[str, list] = {}
        self.step = 0
        self._every = every

    def begin(self):
        self._step = tf.train.get_global_step()
        graph = tf.get_default_graph()
        [self._loss] = graph.get_collection(tf.GraphKeys.LOSSES)[-1:]
        self._variables = {v.op.name: v for v in tf.global_variables()}

    def steps_until_control(self, global_step):
        return self._every

    def before_run(self, run_context):
        return tf.train.SessionRunArgs([self._step, self._loss])

    def after_run(self, run_context, run_values):
        step, loss = run_values.results
        self.losses[int(step)] = float(loss)

    def end(self, session):
        values = session.run(self._variables)
        self.variables = {name: value.tolist() for name, value in values.items()}
        self.step = int(session.run(self._step))


class StopsAt(tf.train.SessionRunHook):
    """Asks to stop, or fails, once a step is reached."""

    def __init__(self, step: int, fail: bool):
        self._at, self._fail = step, fail

    def begin(self):
        self._step = tf.train.get_global_step()

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        if run_values.results >= self._at:
            if self._fail:
                raise ValueError("this hook fails")
            run_context.request_stop()


def share(params, dataset=None):
    """This host's part of batches that are the same for any number of hosts."""
    context = params["context"]
    size = params["batch_size"]
    first = context.current_host * size
    dataset = dataset or tf.data.Dataset.from_tensor_slices(legacy_models.examples()).repeat()
    dataset = dataset.batch(GLOBAL_BATCH, drop_remainder=True)

    def cut(features, labels):
        return features[first : first + size], labels[first : first + size]

    return dataset.map(cut)


def make(model_dir, train_op=None, use_tpu=True, spec=None, **kwargs):
    """The estimator of all scenarios."""
    model_fn = legacy_models.make_model_fn(train_op, **(spec or {}))
    config = {"save_checkpoints_steps": 10, "save_summary_steps": 5, "log_step_count_steps": 5}
    return legacy_models.make_estimator(
        model_dir,
        model_fn,
        use_tpu=use_tpu,
        loop=kwargs.pop("loop", 4),
        **{**config, **kwargs},
    )


def momentum(loss, params):
    optimizer = tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.1, 0.9))
    return optimizer.minimize(loss, global_step=tf.train.get_global_step())


def train(model_dir, steps=25, **kwargs):
    """Trains, then evaluates and predicts; every machine for itself."""
    est = make(model_dir, momentum, **kwargs)
    # The chief looks at every step, others at every fifth: loops differ between machines.
    hook = Recorder(every=1 if est.config.is_chief else 5)
    calls = []

    def input_fn(params):
        calls.append([params["context"].current_host, params["batch_size"]])
        return share(params)

    est.train(input_fn, hooks=[hook], max_steps=steps)
    saved = est.latest_checkpoint()
    results = est.evaluate(legacy_models.train_input_fn, steps=4)
    predictions = list(est.predict(legacy_models.finite_input_fn(21)))
    est.train(input_fn, max_steps=steps)  # skipped by all
    return {
        "losses": hook.losses,
        "variables": hook.variables,
        "step": hook.step,
        "calls": calls,
        "saved": saved,
        "results": {name: float(value) for name, value in results.items()},
        "predictions": [int(p["class"]) for p in predictions],
    }


SCENARIOS = {f.__name__: f for f in (train,)}


def main(scenario: str, result: str, arguments: str) -> None:
    tf.logging.set_verbosity(tf.logging.INFO)
    found = SCENARIOS[scenario](**json.loads(arguments))
    pathlib.Path(result).write_text(json.dumps({**found, "pid": os.getpid()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
