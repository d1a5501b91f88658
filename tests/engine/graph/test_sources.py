"""An error of an operation ends with the line of the user's code that made the operation."""

import linecache
import math

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import on

import tpu_estimator_compat as tpu
from tpu_estimator_compat import environment

TABLE = (0.0, 1.0, 2.0)


def out_of_range(x):
    return tf.gather(tf.constant(TABLE), tf.cast(x, tf.int32))  # here


def input_fn(params, where=""):
    def mapped(x):
        return {"x": x}, out_of_range(x) if where == "map" else x

    data = tf.data.Dataset.from_tensor_slices(np.array([0, 1, 2, 0, 1, 2, 0, 7], np.float32))
    return data.map(mapped).repeat().batch(params["batch_size"], drop_remainder=True)


class Looks(tf.train.SessionRunHook):
    def begin(self):
        x = tf.get_default_graph().get_tensor_by_name("x_of_step:0")
        self.looked_up = out_of_range(x)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.looked_up)


def branch(x):
    return tf.cond(tf.reduce_sum(x) < -1, lambda: x, lambda: out_of_range(x))


def model_fn(features, labels, mode, params):
    where = params["where"]
    x = tf.identity(features["x"], "x_of_step")
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    y = x * w
    if where in ("step", "predict"):
        y = y + out_of_range(x)
    if where == "branch":
        y = y + branch(x)
    if mode == "infer":
        return tpu.TPUEstimatorSpec(mode, predictions={"y": y})
    loss = tf.reduce_mean((y - labels) ** 2)
    minimize = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(1e-3)).minimize
    host_call = (lambda x: [tf.print(out_of_range(x))], [x]) if where == "host_call" else None
    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=minimize(loss, tf.train.get_global_step()), host_call=host_call
    )


def raised(call):
    with pytest.raises(tf.errors.InvalidArgumentError, match="7 is not in") as caught:
        call()
    return str(caught.value)


def last_line(message):
    """The code of the last line that the message names; the lines that the message names."""
    named = [line for line in message.splitlines() if line.startswith("  File ")]
    assert all("site-packages" not in line for line in named)
    _, file, rest = named[-1].split('"')
    return linecache.getline(file, int(rest.split()[2].strip(","))).strip(), named


CASES = [
    *(("tensorflow", 1, where) for where in ("step", "branch", "map", "host_call", "hook")),
    *(("tensorflow", 2, where) for where in ("step", "map", "host_call")),
    *(("jax", 2, where) for where in ("map", "host_call")),
]


@pytest.mark.parametrize(("runtime", "replicas", "where"), CASES)
def test_training_says_which_line_made_the_operation(tmp_path, runtime, replicas, where):
    if runtime == "jax":
        pytest.importorskip("jax")
    estimator = on(runtime, replicas, tmp_path, model_fn, params={"where": where})
    hooks = [Looks()] if where == "hook" else []
    message = raised(
        lambda: estimator.train(lambda params: input_fn(params, where), steps=20, hooks=hooks)
    )
    code, named = last_line(message)
    assert code.endswith("# here")
    assert "stack traces unavailable" not in message
    assert message.count("Original stack trace for") == 1
    caller = {"hook": "begin", "map": "mapped", "branch": "branch"}.get(where, "model_fn")
    assert any(line.endswith(f"in {caller}") for line in named) or where == "host_call"


@pytest.mark.parametrize("where", ["step", "predict"])
def test_keras_loops_say_it_too(tmp_path, where):
    model = on("tensorflow", 1, tmp_path, model_fn, params={"where": where}).keras_model()
    data = input_fn({"batch_size": 8}, where)
    if where == "predict":
        code, _ = last_line(raised(lambda: model.predict(data.take(2), verbose=0)))
    else:
        code, _ = last_line(raised(lambda: model.fit(data, steps_per_epoch=2, verbose=0)))
    assert code.endswith("# here")


@pytest.mark.parametrize("executor", ["default", ""])
def test_a_prediction_of_many_batches(tmp_path, monkeypatch, executor, tuned):
    """The single-threaded executor does not name the operation; the error says what to do."""
    monkeypatch.setenv(environment.EXECUTOR_VARIABLE, executor)
    # However long calls take, the single-threaded executor runs all batches but the first two.
    tuned(turns=1, few_steps=1, small_step=math.inf, tracing=math.inf, clearly_faster=math.inf)
    estimator = on("tensorflow", 1, tmp_path, model_fn, params={"where": "predict"})
    zeros = ({"x": [0.0] * 8}, [0.0] * 8)
    estimator.train(lambda params: tf.data.Dataset.from_tensors(zeros), steps=1)
    ids = np.repeat(np.array([0, 1, 2, 1, 7], np.float32), 8)
    data = {"x": ids}
    message = raised(
        lambda: list(
            estimator.predict(lambda params: tf.data.Dataset.from_tensor_slices(data).batch(8))
        )
    )
    if executor:
        assert last_line(message)[0].endswith("# here")
    else:
        assert f"Set {environment.EXECUTOR_VARIABLE}=default" in message


def test_a_generators_error_ends_at_its_datasets_line(tmp_path):
    def input_fn(params):
        def broken():
            yield np.ones([8], np.float32)
            raise tf.errors.InvalidArgumentError(None, None, "7 is not in my data")

        data = tf.data.Dataset.from_generator(broken, tf.float32, [8])
        return data.map(lambda x: ({"x": x}, x))

    estimator = on("tensorflow", 1, tmp_path, model_fn, params={"where": ""})
    with pytest.raises(tf.errors.UnknownError, match="7 is not in my data") as caught:
        estimator.train(input_fn, steps=3)
    traceback_, stack = str(caught.value).split("Original stack trace for 'PyFunc':")
    assert "in broken" in traceback_
    assert "from_generator(" in last_line(stack)[0]
