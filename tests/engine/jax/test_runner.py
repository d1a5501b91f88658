import os
import signal
import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import RUNTIMES, assert_near, on, variables
from support.legacy_models import (
    adam,
    examples,
    finite_input_fn,
    logits_of,
    steps_done,
    train_input_fn,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.jax import step


@pytest.mark.parametrize("loop", [1, 7])
def test_exactly_the_steps_asked_for(tmp_path, loop):
    estimator = on("jax", 2, tmp_path, tpu_config={"iterations_per_loop": loop})
    for arguments, expected in (({"steps": 10}, 10), ({"max_steps": 25}, 25), ({"steps": 3}, 28)):
        estimator.train(train_input_fn, **arguments)
        assert steps_done(estimator) == expected
    estimator.train(train_input_fn, max_steps=25)
    assert steps_done(estimator) == 28
    estimator.train(train_input_fn, steps=9, hooks=[tf.train.StopAtStepHook(num_steps=4)])
    assert steps_done(estimator) == 32


@pytest.mark.parametrize("loop", [4, 100])
def test_the_data_ends(tmp_path, loop):
    """In the middle of a loop, with a batch left for one replica of two."""

    def input_fn(params):
        return finite_input_fn(8 * 19)(params).unbatch().batch(8, drop_remainder=True)

    config = {"per_host_input_for_training": tpu.InputPipelineConfig.PER_HOST_V2}
    estimator = on("jax", 2, tmp_path, tpu_config={"iterations_per_loop": loop, **config})
    estimator.train(input_fn, max_steps=100)
    assert steps_done(estimator) == 9
    assert estimator.latest_checkpoint().endswith("model.ckpt-9")


def bad_model_fn(features, labels, mode, params):
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
    bad = tf.equal(tf.train.get_global_step(), 6) & tf.reduce_all(features[:, 0] < 9)
    loss = tf.where(bad, np.nan * loss, loss)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=adam(loss, params))


@pytest.mark.parametrize("loop", [1, 100])
def test_training_ends_at_a_nan(tmp_path, caplog, loop):
    """With the same error, after the same step, with the same checkpoints."""
    seen = {}
    for runtime in RUNTIMES:
        estimator = on(
            runtime,
            2,
            tmp_path / runtime,
            bad_model_fn,
            tpu_config={"iterations_per_loop": loop},
            save_checkpoints_steps=5,
        )
        counter = Steps()
        with pytest.raises(tf.train.NanLossDuringTrainingError) as raised:
            estimator.train(train_input_fn, max_steps=20, hooks=[counter])
        seen[runtime] = (str(raised.value), estimator.latest_checkpoint()[-2:], counter.seen)
    assert seen["jax"] == seen["tensorflow"]


class Steps(tf.train.SessionRunHook):
    def __init__(self):
        self.seen = []

    def after_run(self, run_context, run_values):
        step = tf.train.get_global_step(run_context.session.graph)
        self.seen.append(int(run_context.session.run(step)))


def test_loops_of_some_seconds(tmp_path):
    hook = Steps()
    estimator = on("jax", 1, tmp_path, tpu_config={"iterations_per_loop": "1s"})
    started = time.monotonic()
    estimator.train(train_input_fn, max_steps=4000, hooks=[hook])
    assert steps_done(estimator) == 4000
    assert hook.seen[-1] == 4000
    # Loops grow towards a second: there are few, unless the machine is slow.
    assert len(hook.seen) < 20 + 2 * (time.monotonic() - started)


class Feeding(tf.train.SessionRunHook):
    def __init__(self):
        self.seen = []
        self._step = 0

    def before_run(self, run_context):
        self._step += 1
        feeds = {"scale:0": float(self._step)}
        if self._step % 2 == 0:
            feeds["shift:0"] = np.full([8, 1], 0.5, np.float32)
        fetches = {"loss": "fed_loss:0", "scale": "scale:0"}
        return tf.train.SessionRunArgs(fetches, feeds)

    def after_run(self, run_context, run_values):
        self.seen.append({k: float(v) for k, v in run_values.results.items()})


def fed_model_fn(features, labels, mode, params):
    scale = tf.placeholder_with_default(1.0, [], name="scale")
    shift = tf.placeholder_with_default(np.zeros([8, 1], np.float32), [None, 1], name="shift")
    logits = logits_of(features) * scale + shift * [[1.0, 2.0, 3.0]]
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.identity(loss, name="fed_loss")
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def test_hooks_that_feed(tmp_path):
    """Training goes by what they feed; later steps do not."""
    seen, values = {}, {}
    for runtime in RUNTIMES:
        hook = Feeding()
        estimator = on(runtime, 2, tmp_path / runtime, fed_model_fn)
        estimator.train(train_input_fn, steps=5, hooks=[hook])
        estimator.train(train_input_fn, steps=5)
        seen[runtime], values[runtime] = hook.seen, variables(estimator)
    assert [s["scale"] for s in seen["jax"]] == [s["scale"] for s in seen["tensorflow"]]
    for found, expected in zip(seen["jax"], seen["tensorflow"], strict=True):
        np.testing.assert_allclose(found["loss"], expected["loss"], 1e-5)
    assert_near(values["jax"], values["tensorflow"])


class Kill(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()


def test_sigterm_ends_training_with_a_checkpoint(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    estimator = on("jax", 2, tmp_path, tpu_config={"iterations_per_loop": 10**8})
    with pytest.raises(SystemExit) as exited:
        estimator.train(train_input_fn, hooks=[Kill()], max_steps=10**8)
    assert exited.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == before
    step = steps_done(estimator)
    assert 0 < step < 10**8
    assert estimator.latest_checkpoint().endswith(f"-{step}")


def test_steps_before_an_error_of_the_input_are_made(tmp_path):
    seen = []

    def model_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        step = tf.reshape(tf.train.get_global_step(), [1])
        call = (lambda step: tf.py_func(lambda s: seen.append(int(s[0])), [step], []), [step])
        train_op = adam(loss, params)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=call)

    def input_fn(params):
        x, y = examples(16)
        data = tf.data.Dataset.range(100).map(
            lambda i: (
                tf.debugging.check_numerics(x * tf.where(tf.equal(i, 7), np.nan, 1.0), "broken"),
                y,
            )
        )
        return data.unbatch().batch(params["batch_size"], drop_remainder=True)

    estimator = on("jax", 1, tmp_path, model_fn, tpu_config={"iterations_per_loop": 20})
    with pytest.raises(tf.errors.InvalidArgumentError, match="broken"):
        estimator.train(input_fn, max_steps=20)
    assert len(seen) == 7


@pytest.mark.parametrize(("columns", "expected"), [(1, {8}), (2**17, {3}), (2**20, {1})])
def test_results_bound_a_dispatch_as_input_does(tmp_path, monkeypatch, columns, expected):
    """A replica has 8 rows: 32 bytes, 4 MiB and 32 MiB for the metrics of a step, of 16 MiB."""
    made = []

    def noted(module, mesh, most, *arguments, **kwargs):
        made.append(most)
        return real(module, mesh, most, *arguments, **kwargs)

    def model_fn(features, labels, mode, params):
        logits = logits_of(features)[:, :1]
        wide = tf.tile(logits, [1, columns])
        metrics = (lambda wide: {"mean": tf.metrics.mean(wide)}, [wide])
        loss = tf.reduce_mean(logits)
        train_op = adam(loss, params) if mode == tpu.ModeKeys.TRAIN else None
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=metrics)

    estimator = on("jax", 2, tmp_path, model_fn)
    estimator.train(train_input_fn, steps=1)
    real = step.StepFunction
    monkeypatch.setattr(step, "StepFunction", noted)
    results = estimator.evaluate(train_input_fn, steps=8)
    assert results["mean"] == pytest.approx(results["loss"], rel=1e-4)
    assert set(made) == expected
