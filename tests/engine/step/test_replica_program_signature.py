"""What programs that are the same have in common, and others have not."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


def program_of(build, **arguments):
    """The program of what `build` returns in a new graph: feeds, fetches, targets."""
    graph = tf.Graph()
    with graph_building.capture_semantics(), graph.as_default():
        return ReplicaProgram(graph, *build(), **arguments)


def signature_of(build, **arguments):
    return program_of(build, **arguments).signature()


def step(
    value=1.0,
    name="x",
    shape=(2,),
    dtype=tf.float32,
    fetched="y",
    wanted=False,
    order=1,
    wait=False,
):
    """A small program; each argument is something that programs may differ in."""
    fed = [tf.placeholder(dtype, [2], name=each) for each in (name, "other")]
    variable = tf.get_variable("weights", shape, dtype)
    x = tf.constant(value, dtype) * fed[0] + fed[1]
    with tf.control_dependencies([fed[0]] if wait else []):
        y = tf.add(x, variable, name="y")
    update = variable.assign_add(y[0] + tf.zeros(shape, dtype))
    return (
        fed[::order],
        [tf.get_default_graph().get_tensor_by_name(f"{fetched}:0")],
        ([update.op] if wanted else []),
    )


def test_the_same_program_has_the_same_signature():
    assert signature_of(step) == signature_of(step) is not None


@pytest.mark.parametrize(
    "other",
    [
        {"value": 2.0},
        {"name": "another"},
        {"shape": (1,)},
        {"dtype": tf.float64},
        {"fetched": "mul"},
        {"wanted": True},
        {"order": -1},
        {"wait": 1},
    ],
    ids=str,
)
def test_programs_that_differ_have_other_signatures(other):
    assert signature_of(step) != signature_of(lambda: step(**other)) is not None


def test_large_constants_count():
    def build(last):
        values = np.zeros([10_000], np.float32)
        values[-1] = last
        return [], [tf.reduce_sum(tf.constant(values))]

    assert signature_of(lambda: build(1.0)) == signature_of(lambda: build(1.0))
    assert signature_of(lambda: build(1.0)) != signature_of(lambda: build(2.0))


def with_functions(factor=2.0, seed=None):
    """A branch in a loop, with a gradient of Python's; TensorFlow numbers all of them."""
    x = tf.placeholder(tf.float32, [], name="x")

    def body(i, y):
        drawn = tf.random.uniform([], seed=seed)
        return i + 1, tf.cond(y > 0, lambda: tf.tanh(y) * factor + drawn, lambda: -y)

    _, y = tf.while_loop(lambda i, y: i < 3, body, [tf.constant(0), tf.nn.swish(x)])
    return [x], [y, *tf.gradients(y, x)]


def test_functions_are_compared_by_what_is_in_them():
    first, second = signature_of(with_functions), signature_of(with_functions)
    assert first == second is not None
    assert first != signature_of(lambda: with_functions(factor=3.0))


def drawing(seed):
    return [], [tf.random.uniform([2], seed=seed)]


def test_kernels_with_a_state_are_not_shared():
    assert signature_of(lambda: drawing(None)) is not None
    assert signature_of(lambda: drawing(1)) is None
    assert signature_of(lambda: with_functions(seed=1)) is None
    # A stream's state is in a variable, where it is not in a function.
    streams = RandomStreams()
    assert program_of(lambda: drawing(1)).signature(streams) is not None
    assert program_of(lambda: with_functions(seed=1)).signature(streams) is None
    assert program_of(lambda: drawing(1)).signature(streams) != (
        program_of(lambda: drawing(2)).signature(streams)
    )


@pytest.mark.parametrize("stateful", [True, False])
def test_functions_of_python_are_not_shared(stateful):
    def build():
        return [], [tf.py_func(lambda: np.float32(1), [], tf.float32, stateful=stateful)]

    assert signature_of(build) is None


def test_a_queue_of_the_graph_is_a_handle_and_shared():
    def build(capacity=3):
        queue = tf.queue.FIFOQueue(capacity, [tf.float32], shapes=[[]])
        return [], [queue.size()]

    assert signature_of(build) == signature_of(build) is not None


def test_several_replicas_share_nothing():
    assert signature_of(step, replicas=2) is None
    assert signature_of(step, rewrites={}) is None
