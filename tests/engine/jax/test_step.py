import shutil

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.jax_estimators import RUNTIMES, assert_near, on, variables
from support.legacy_models import Fetching, adam, logits_of, make_model_fn, train_input_fn
from support.untuned import untuned

import tpu_estimator_compat as tpu

DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "bool"]
DTYPES += ["bfloat16", "float16", "float32", "float64", "complex64"]


def typed_input_fn(params):
    size = params["batch_size"]
    numbers = np.arange(size)
    features = {name: tf.cast(tf.constant(numbers), name) for name in DTYPES}
    features["bool"] = tf.constant(numbers % 2 == 0)
    # More than 32 bits hold.
    features["int64"] = tf.constant(numbers + 2**40)
    features["float64"] = tf.constant(numbers + 1e-12)
    data = tf.data.Dataset.from_tensors((features, numbers.astype(np.float32)))
    return untuned(data.repeat())


def typed_model_fn(features, labels, mode, params):
    """A variable of each dtype, which adds up what is fed; 64 bits are needed for two of them."""
    updates = {}
    for name in DTYPES:
        initial = tf.zeros_initializer()
        variable = tf.get_variable(name + "_sum", [8], name, initial, trainable=False)
        add = tf.logical_xor if name == "bool" else tf.add
        updates[name] = tf.assign(variable, add(variable, features[name]))
    weight = tf.get_variable("weight", [], tf.float64, tf.constant_initializer(1 / 3))
    loss = tf.reduce_mean(tf.cast(labels, tf.float64) * weight)
    gradient = tf.tpu.cross_replica_sum(tf.cast(tf.gradients(loss, weight)[0], tf.float32))
    train_op = tf.group(
        *updates.values(),
        tf.assign_sub(weight, 1e-9 * tf.cast(gradient, tf.float64)),
        tf.assign_add(tf.train.get_global_step(), 1),
    )
    for name in DTYPES:
        tf.identity(features[name], name=name + "_seen")
    return tpu.TPUEstimatorSpec(mode, loss=tf.cast(loss, tf.float32), train_op=train_op)


class Typed(tf.train.SessionRunHook):
    def begin(self):
        tf.constant([1, 2], tf.int64, name="numbers")
        tf.constant("text", name="text")

    def before_run(self, run_context):
        names = [*(f"{name}_seen" for name in DTYPES), "numbers", "text"]
        return tf.train.SessionRunArgs({name: name + ":0" for name in names})

    def after_run(self, run_context, run_values):
        self.seen = run_values.results


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.full), 2])
def test_dtypes(tmp_path, replicas):
    """Variables and inputs have the model's, 64 bits included; constants may be fetched."""
    values, seen = {}, {}
    for runtime in RUNTIMES:
        hook = Typed()
        estimator = on(
            runtime, replicas, tmp_path / runtime, typed_model_fn, train_batch_size=8 * replicas
        )
        estimator.train(typed_input_fn, steps=4)
        estimator.train(typed_input_fn, steps=3, hooks=[hook])
        values[runtime], seen[runtime] = variables(estimator), hook.seen
    for found, expected in ([each[r] for r in ("jax", "tensorflow")] for each in (values, seen)):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert np.asarray(found[name]).dtype == np.asarray(value).dtype, name
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert values["jax"]["int64_sum"][1] == 7 * (2**40 + 1)


def scalar_input_fn(params):
    size = params["batch_size"]
    data = tf.data.Dataset.range(1, 100).map(
        lambda i: (
            {"scale": tf.cast(i, tf.float32), "x": tf.ones([size, 4])},
            tf.zeros([size], tf.int32),
        )
    )
    return untuned(data)


def scaled(features):
    return logits_of(features["x"]) * tf.identity(features["scale"], name="scale")


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.full), 2])
def test_scalars_as_input(tmp_path, replicas):
    found = {}
    model_fn = make_model_fn(logits=scaled)
    for runtime in RUNTIMES:
        hook = Fetching("scale:0")
        for loop, steps, hooks in ((1, 4, [hook]), (5, 5, [])):
            config = {
                "iterations_per_loop": loop,
                "per_host_input_for_training": tpu.InputPipelineConfig.PER_HOST_V2,
            }
            estimator = on(runtime, replicas, tmp_path / runtime, model_fn, tpu_config=config)
            estimator.train(scalar_input_fn, steps=steps, hooks=hooks)
        found[runtime] = (hook.seen, variables(estimator))
    assert found["jax"][0] == found["tensorflow"][0]
    assert_near(found["jax"][1], found["tensorflow"][1])


def test_gradients_through_branches(tmp_path):
    """They need values of the branch that was taken, such as the mask of a dropout."""

    def branching(features):
        logits = logits_of(features)
        dropped = tf.cond(
            tf.train.get_global_step() < 3,
            lambda: tf.nn.dropout(logits, rate=0.5),
            lambda: tf.nn.sigmoid(logits) * tf.tanh(logits),
        )
        return tf.while_loop(
            lambda i, _: i < 3,
            lambda i, v: (i + 1, tf.cond(i > 1, lambda: tf.sigmoid(v), lambda: tf.tanh(v))),
            (0, dropped),
            maximum_iterations=3,
        )[1]

    model_fn = make_model_fn(logits=branching)
    estimator = on("jax", 2, tmp_path / "jax", model_fn)
    estimator.train(train_input_fn, steps=3)  # with dropout
    shutil.copytree(tmp_path / "jax", tmp_path / "tensorflow")
    values = {}
    for runtime in RUNTIMES:
        estimator = on(runtime, 2, tmp_path / runtime, model_fn)
        estimator.train(train_input_fn, steps=4)
        values[runtime] = variables(estimator)
    assert_near(values["jax"], values["tensorflow"])


def _python(x):
    return tf.py_func(lambda v: v, [x], tf.float32)


def _unknown_size(x):
    return tf.tile(x, [tf.cast(tf.reduce_max(tf.abs(x)), tf.int32), 1])


def _unbounded_loop(x):
    """The gradient of which keeps something of each turn."""
    weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
    return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * weight), [0, weight])[1]


REFUSED = {
    "EmptyTensorList": (_unbounded_loop, "give tf.while_loop a constant maximum_iterations"),
    "PyFunc": (_python, "do it in input_fn"),
    "Tile": (_unknown_size, "as Python numbers"),
    "RandomPoissonV2": (lambda x: tf.random.poisson(3.0, []), ""),
}


@pytest.mark.parametrize("op", REFUSED)
def test_refusals_name_the_line(tmp_path, op):
    """Node, file, line, and what to write instead, where the table knows it."""
    offend, advice = REFUSED[op]

    def model_fn(features, labels, mode, params):
        bad = offend(features)  # this line
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        loss += 0 * tf.reduce_mean(tf.cast(bad, tf.float32))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=adam(loss, params))

    with pytest.raises(NotImplementedError, match='runtime="jax"') as raised:
        on("jax", 2, tmp_path, model_fn).train(train_input_fn, steps=1)
    message = str(raised.value)
    for part in (op, "test_step.py:", advice):
        assert part in message
    for part in ("TF_DUMP_GRAPH_PREFIX", "dummy_file_name"):
        assert part not in message


def test_ragged_and_sparse_input_is_refused(tmp_path):
    def input_fn(params):
        sparse = tf2.sparse.from_dense(np.eye(16, dtype=np.float32))
        return tf.data.Dataset.from_tensors(({"s": sparse}, [0] * 16)).repeat()

    def model_fn(features, labels, mode, params):
        return None

    with pytest.raises(ValueError, match="static shape"):
        on("jax", 1, tmp_path, model_fn).train(input_fn, steps=1)


DYNAMIC = {
    "boolean_mask": lambda rows, x: tf.boolean_mask(rows, x[:, 0] > 0),
    "unique": lambda rows, x: (
        rows[0] + tf.cast(tf.unique(tf.cast(x[:, 0] * 2, tf.int32))[0], tf.float32)
    ),
    "gather_nd": lambda rows, x: tf.gather_nd(rows, tf.where(x[:, 0] > 0)),
    "in a branch": lambda rows, x: tf.cond(
        x[0, 0] > 0,
        lambda: tf.reduce_sum(tf.boolean_mask(rows, x[:, 0] > 0)),
        lambda: tf.reduce_sum(rows),
    ),
}


@pytest.mark.parametrize("kind", DYNAMIC)
@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.full), 2])
def test_shapes_that_depend_on_data_are_refused(tmp_path, kind, replicas):
    def model_fn(features, labels, mode, params):
        logits = logits_of(features)
        rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(DYNAMIC[kind](rows, features))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=adam(loss, params))

    with pytest.raises(NotImplementedError, match="depends on data") as raised:
        on("jax", replicas, tmp_path, model_fn).train(train_input_fn, steps=1)
    assert "test_step.py:" in str(raised.value)
