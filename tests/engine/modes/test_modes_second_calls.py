"""Second calls of train, evaluate and predict: they take functions over, and nothing else."""

import gc
import itertools
import os
import weakref

import numpy as np
import psutil
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    Fetching,
    finite_input_fn,
    last_loss,
    make_estimator,
    make_model_fn,
    train_input_fn,
)
from tensorflow.python.eager import context

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.functions.traces import TRACES
from tpu_estimator_compat.engine.state.variables import VariableStore


@pytest.fixture(autouse=True)
def nothing_is_kept():
    """From another test."""
    TRACES.clear()
    yield
    TRACES.clear()


@pytest.fixture
def imports(monkeypatch, tuned):
    """Types of the operations that were imported under functions since it was cleared.

    Executors are chosen by a clock that goes on alike, however busy the machine is.
    """
    ticks = itertools.count()
    tuned(clock=lambda: next(ticks) * 1e-4)
    imported = []
    import_graph_def = tf.graph_util.import_graph_def

    def counted(graph_def, **arguments):
        imported.extend(node.op for node in graph_def.node)
        return import_graph_def(graph_def, **arguments)

    monkeypatch.setattr("tensorflow.graph_util.import_graph_def", counted)
    return imported


def cycle(estimator):
    """What a train, an evaluate and a predict give, with everything that went into it."""
    recorder = Fetching(last_loss)
    estimator.train(train_input_fn, steps=7, hooks=[recorder])
    results = estimator.evaluate(train_input_fn, steps=2)
    predictions = [p["class"] for p in estimator.predict(finite_input_fn(40))]
    weights = {n: estimator.get_variable_value(n) for n in estimator.get_variable_names()}
    return {"losses": recorder.seen, **results, "classes": predictions, **weights}


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def dropping_model_fn(features, labels, mode, params):
    """Has seeded random ops, one of them in a loop."""
    kept = tf.nn.dropout(features, rate=0.5, seed=3) if mode == "train" else features
    _, noise = tf.while_loop(
        lambda i, x: i < 2,
        lambda i, x: (i + 1, x + tf.random.uniform([4], maxval=1e-2, seed=5)),
        [tf.constant(0), tf.zeros([4])],
    )
    return make_model_fn()(kept + noise, labels, mode, params)


def branching_model_fn(features, labels, mode, params):
    """Has functions in its graph, whose names are others in every call."""
    features = tf.cond(tf.reduce_sum(features) > 0, lambda: features, lambda: features * 0.5)
    return make_model_fn()(features, labels, mode, params)


@pytest.mark.parametrize(
    ("model_fn", "use_tpu"), [(dropping_model_fn, False), (branching_model_fn, True)]
)
def test_cycles_are_bit_equal_to_those_that_are_traced_anew(tmp_path, model_fn, use_tpu):
    shared = make_estimator(tmp_path / "shared", model_fn, use_tpu=use_tpu)
    anew = make_estimator(tmp_path / "anew", model_fn, use_tpu=use_tpu)
    for _ in range(2):
        one = cycle(shared)
        kept = TRACES._kept.copy()
        TRACES.clear()
        assert_equal(one, cycle(anew))
        TRACES._kept |= kept


@pytest.fixture
def one_executor(tuned):
    """No other one is tried, which would need functions of its own: when, goes by the clock."""
    tuned(turns=1000)


def test_a_third_cycle_builds_nothing_anew(tmp_path, imports, one_executor):
    estimator = make_estimator(tmp_path, branching_model_fn)
    cycle(estimator)
    assert "MatMul" in imports
    cycle(estimator)  # restores, which the first had not to
    del imports[:]
    cycle(estimator)
    assert not {"MatMul", "RestoreV2", "SaveV2", "ResourceApplyAdam"}.intersection(imports)


def test_another_estimator_takes_over_functions_and_no_variables(tmp_path, imports, one_executor):
    one, other = (make_estimator(tmp_path / name, make_model_fn()) for name in "ab")
    first = cycle(one)
    del imports[:]
    assert_equal(first, cycle(other))
    assert "MatMul" not in imports
    cycle(one)
    assert not np.array_equal(one.get_variable_value("hidden"), first["hidden"])
    np.testing.assert_array_equal(other.get_variable_value("hidden"), first["hidden"])


def test_a_number_of_python_in_the_graph_makes_it_another(tmp_path, imports):
    calls = []

    def model_fn(features, labels, mode, params):
        calls.append(mode)
        return make_model_fn()(features * float(len(calls)), labels, mode, params)

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=1)
    for _ in range(2):
        del imports[:]
        estimator.train(train_input_fn, steps=1)
        assert "MatMul" in imports


def test_random_numbers_without_a_seed_are_others_in_every_call(tmp_path, imports):
    def model_fn(features, labels, mode, params):
        drawn = tf.random.uniform(tf.shape(features)[:1])
        return tpu.TPUEstimatorSpec(mode, predictions={"drawn": drawn})

    estimator = make_estimator(tmp_path, model_fn, tf_random_seed=None)
    drawn = []
    for _ in range(3):
        drawn += [p["drawn"] for p in estimator.predict(finite_input_fn(16))]
    assert len(set(drawn)) == len(drawn) == 48
    assert imports.count("RandomUniform") == 1


def test_functions_of_python_are_those_of_their_call(tmp_path):
    calls = []

    def model_fn(features, labels, mode, params):
        number = len(calls)
        calls.append(number)
        value = tf.py_func(lambda x: np.full(x.shape[:1], number), [features], tf.int64)
        value.set_shape([None])
        return tpu.TPUEstimatorSpec(mode, predictions={"call": value})

    estimator = make_estimator(tmp_path, model_fn)
    for number in range(3):
        assert {p["call"] for p in estimator.predict(finite_input_fn(8))} == {number}


def test_tables_are_filled_for_each_call(tmp_path):
    words = {"a": 1}

    def model_fn(features, labels, mode, params):
        initializer = tf.lookup.KeyValueTensorInitializer(list(words), list(words.values()))
        table = tf.lookup.StaticHashTable(initializer, -1)
        return tpu.TPUEstimatorSpec(mode, predictions={"id": table.lookup(features)})

    def input_fn(params):
        return tf.data.Dataset.from_tensor_slices(["a", "b"]).batch(2)

    estimator = make_estimator(tmp_path, model_fn)
    for expected in ([1, -1], [1, -1], [1, 2], [1, 2]):
        if expected[1] == 2:
            words["b"] = 2
        assert [int(p["id"]) for p in estimator.predict(input_fn)] == expected


def host_call(directory):
    summary = tf.compat.v2.summary

    def write(loss):
        with summary.create_file_writer(str(directory)).as_default(), summary.record_if(True):
            summary.scalar("mean", tf.reduce_mean(loss), tf.train.get_global_step())
        return tf.summary.all_v2_summary_ops()

    return lambda: (write, [tf.reshape(tf.get_collection(tf.GraphKeys.LOSSES)[0], [1])])


def test_host_calls_write_where_their_estimator_does(tmp_path):
    for name in ("a", "b"):
        model_fn = make_model_fn(host_call=host_call(tmp_path / name))
        estimator = make_estimator(tmp_path / f"model_{name}", model_fn, use_tpu=True)
        for _ in range(2):
            estimator.train(train_input_fn, steps=5)
        files = map(str, (tmp_path / name).iterdir())
        events = [event for file in files for event in tf.train.summary_iterator(file)]
        steps = sorted(event.step for event in events if event.summary.value)
        assert steps == list(range(1, 11))


def test_no_variable_of_an_earlier_call_is_kept(tmp_path, monkeypatch):
    made = []
    create = VariableStore._create

    def noted(self, *arguments):
        variable = create(self, *arguments)
        made.append(weakref.ref(variable))
        return variable

    monkeypatch.setattr(VariableStore, "_create", noted)
    estimator = make_estimator(tmp_path)
    for _ in range(2):
        cycle(estimator)
    del estimator
    gc.collect()
    assert len(made) > 10
    assert not [variable for variable in made if variable() is not None]


@pytest.mark.slow
def test_many_estimators_leave_as_much_as_few(tmp_path):
    """A hundred, each with a graph of its own: three times as many as are kept."""

    def predict(width):
        def model_fn(features, labels, mode, params):
            weights = tf.get_variable("weights", [4, width], initializer=tf.ones_initializer())
            return tpu.TPUEstimatorSpec(mode, predictions=tf.matmul(features, weights))

        estimator = make_estimator(tmp_path, model_fn, params={})
        assert len(list(estimator.predict(finite_input_fn(16)))) == 16

    resident, functions = [], []
    for i in range(100):
        predict(width=i + 1)
        if i % 20 == 19:
            gc.collect()
            resident.append(psutil.Process().memory_info().rss / 2**20)
            functions.append(len(context.context().list_function_names()))
    assert len(TRACES) == 32
    assert functions[-1] <= functions[-2] + 10
    assert resident[-1] - resident[-2] < 10


SCRIPT = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf
import tpu_estimator_compat as tpu
from tpu_estimator_compat import layers

def model_fn(features, labels, mode, params):
    outputs = layers.dense(features["x"], 1)
    if mode == "infer":
        return tpu.TPUEstimatorSpec(mode, predictions={"y": outputs})
    loss = tf.reduce_mean((outputs - labels) ** 2)
    if mode == "eval":
        metrics = (lambda y: {"mean": tf.metrics.mean(y)}, [outputs])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer())
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn(params, repeat=False):
    x = np.arange(192, dtype=np.float32).reshape(64, 3)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1]))
    data = data.map(lambda x, y: (x, y + 1), num_parallel_calls=2)
    data = data.repeat() if repeat else data
    return data.batch(params["batch_size"], drop_remainder=True).prefetch(2)

estimator = tpu.TPUEstimator(
    model_fn, use_tpu=sys.argv[1] == "tpu", train_batch_size=8, eval_batch_size=8,
    predict_batch_size=8, config=tpu.RunConfig(tpu_config=tpu.TPUConfig(iterations_per_loop=50)))
estimator.train(lambda params: input_fn(params, repeat=True), steps=200)
print(estimator.evaluate(input_fn, steps=8)["global_step"], end=" ")
print(len(list(estimator.predict(input_fn))))
"""


@pytest.mark.parametrize("rules", ["plain", "tpu"])
def test_every_mode_ends(rules, tmp_path, forks):
    environment = {**os.environ, "TF_NUM_INTEROP_THREADS": "1"}
    done = forks.run("-c", SCRIPT, rules, env=environment, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "200 64\n"
