import os
import pathlib

import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support import python_path

import tpu_estimator_compat as tec
import tpu_estimator_compat.v1 as ours
from tpu_estimator_compat.engine.capture import capture
from tpu_estimator_compat.engine.capture.capture import LegacyGraph
from tpu_estimator_compat.engine.capture.replica_context import in_replica


def looped(value, weight):
    def body(i, x):
        tf.summary.scalar("inside", x)
        return i + 1, x * weight

    return tf.while_loop(lambda i, x: i < 3, body, [tf.constant(0), value])[1]


def branched(value, weight):
    def branch():
        tf.summary.scalar("inside", value)
        return value * weight

    return tf.cond(value > 0, branch, lambda: weight)


@pytest.mark.parametrize("compute", [looped, branched])
def test_they_cannot_be_merged_with_others(tmp_path, compute):
    def model_fn(features, labels, mode, params):
        weight = tf.get_variable("weight", [])
        output = compute(tf.reduce_mean(features), weight)
        tf.summary.scalar("outside", output)
        loss = output**2
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tec.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    config = tec.RunConfig(model_dir=str(tmp_path))
    estimator = tec.TPUEstimator(model_fn, config=config, train_batch_size=4, use_tpu=False)
    with pytest.raises(ValueError, match="must be from the same graph as"):
        estimator.train(lambda params: tf.data.Dataset.from_tensors(tf.ones([4])).repeat(), steps=2)


def test_every_tf_namespace_tells_the_number_of_replicas(strategy):
    apis = [tf2, tf2.compat.v1, ours, ours.compat.v2]
    with tf2.Graph().as_default():
        with in_replica(strategy(2)):
            assert [api.distribute.get_strategy().num_replicas_in_sync for api in apis] == 4 * [2]
        assert tf2.distribute.get_strategy().num_replicas_in_sync == 1


ROOT = pathlib.Path(__file__).parents[3]

REFS_SCRIPT = """
import tensorflow as tf2

def daisy_chain(getter, name, *args, **kwargs):
    variable = getter(name, *args, **kwargs)
    value = tf2.identity(variable._ref())
    value.assign_sub = variable.assign_sub
    return value

def model_fn(features, labels, mode):
    with tf2.variable_scope("chained", custom_getter=daisy_chain):
        weight = tf2.get_variable("weight", [3, 6 / 2], initializer=tf2.zeros_initializer())
    cell = tf2.nn.rnn_cell.LSTMCell(6 / 2)
    outputs, _ = tf2.nn.dynamic_rnn(cell, tf2.matmul(features, weight)[:, None], dtype=tf2.float32)
    loss = tf2.reduce_mean(tf2.square(outputs - 1.0))
    train_op = tf2.train.GradientDescentOptimizer(1.0).minimize(loss, tf2.train.get_global_step())
    return tf2.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn():
    return tf2.data.Dataset.from_tensors(tf2.ones([4, 3])).repeat()

estimator = tf2.estimator.Estimator(model_fn, config=tf2.estimator.RunConfig(tf_random_seed=1))
estimator.train(input_fn, steps=3)
weight = estimator.get_variable_value("chained/weight")
print(weight.shape, (weight != 0).all())
try:
    tf2.TensorShape([1.0])
    print("a float is a size here")
except TypeError:
    print("a float is no size here")
"""


def test_values_of_variables_and_whole_floats_as_sizes(forks, tmp_path) -> None:
    (tmp_path / "script.py").write_text(REFS_SCRIPT)
    done = forks.run(
        *("-m", "tpu_estimator_compat", "run", "script.py"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": python_path.joined(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.stdout.splitlines() == ["(3, 3) True", "a float is no size here"], done.stderr


def build(graph):
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        tf.cond(tf.reduce_sum(x) > 0, lambda: x * 1.5, lambda: x)
    return graph


def shapes(graph_def):
    return {n.name: str(n.attr["_output_shapes"]) for n in graph_def.node}


def test_the_graph_def_is_tensorflows_first_and_again():
    """Even if its receiver has changed the first; shapes are worked out once."""
    theirs, ours = build(tf.Graph()), build(LegacyGraph())
    for graph in (theirs, ours):
        graph.finalize()
    expected = [shapes(theirs.as_graph_def(add_shapes=each)) for each in (True, False)]
    given = ours.as_graph_def(add_shapes=True)
    assert shapes(given) == expected[0]
    given.node[0].name = "mine"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.Tensor, "get_shape", None)
        for _ in range(2):
            given = ours.as_graph_def(add_shapes=True)
            assert shapes(given) == expected[0]
            given.node[0].name = "mine"
    assert shapes(ours.as_graph_def()) == expected[1]


def test_operations_are_made_by_the_public_method_too():
    graph = LegacyGraph()
    with graph.as_default():
        value = tf.constant(1.0)
        made = graph.create_op("Identity", [value], [tf.float32], name="made", attrs={})
    assert (made.name, made.inputs[0]) == ("made", value)


def test_what_is_added_is_there():
    graph = build(LegacyGraph())
    with graph.as_default():
        graph.get_tensor_by_name("x:0").set_shape([2, 3])
        graph.finalize()
        assert "size: 2" in shapes(graph.as_graph_def(add_shapes=True))["x"]
        graph._unsafe_unfinalize()
        tf.constant(1, name="late")
        graph.finalize()
    assert "late" in shapes(graph.as_graph_def(add_shapes=True))


def test_a_large_one_is_not_kept(monkeypatch):
    monkeypatch.setattr(capture, "_KEPT", 10)
    graph = build(LegacyGraph())
    graph.finalize()
    first, second = (graph.as_graph_def(add_shapes=True) for _ in range(2))
    assert first == second
    assert graph._shaped is None
