import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.session import feeds


def read(graph, fed):
    return {t.name: v.tolist() for t, v in feeds.read(graph, fed)}


@pytest.fixture
def x(graph):
    return tf.placeholder(tf.int32, None, name="x")


@pytest.fixture
def f(graph):
    return tf.placeholder(tf.float16, [], name="f")


def test_keys_are_tensors_their_names_and_tuples_of_them(graph, x, f):
    assert read(graph, {x: 1, "f:0": 2048}) == {"x:0": 1, "f:0": 2048.0}
    assert read(graph, {(x, "f:0"): (1, 0.5)}) == {"x:0": 1, "f:0": 0.5}
    assert read(graph, {x: 1, "x:0": 2}) == {"x:0": 2}
    assert read(graph, {x: 2.5}) == {"x:0": 2}


def test_ints_in_lists_wrap_as_with_numpy_1(graph, x):
    assert read(graph, {x: [2**40 + 3, -1]}) == {"x:0": [3, -1]}


@pytest.mark.parametrize("key", [3, None, "x", "nothing:0"])
def test_keys_that_are_no_tensors(graph, x, key):
    with pytest.raises(TypeError, match=r"^Cannot interpret feed_dict key as Tensor: "):
        read(graph, {key: 1})


def test_keys_of_another_kind_or_graph(graph, x):
    with tf.Graph().as_default():
        other = tf.placeholder(tf.int32, name="other")
    for key in (other, x.op):
        with pytest.raises(TypeError, match=r"^Cannot interpret feed_dict key as Tensor: "):
            read(graph, {key: 1})


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_ints_too_large(graph, x, value):
    with pytest.raises(TypeError, match=f"^Type of feed value {value} with type <class 'int'> is "):
        read(graph, {x: value})


def test_ints_that_a_float_rounds(graph, f):
    with pytest.raises(TypeError, match=r"is not compatible with Tensor type .*\.float16"):
        read(graph, {f: 2049})


@pytest.mark.parametrize("value", [np.nan, np.inf, 1j, None, "text"])
def test_values_that_are_no_ints(graph, x, value):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        read(graph, {x: value})


def test_values_that_are_no_strings(graph):
    text = tf.placeholder(tf.string, name="text")
    assert read(graph, {text: ["a", b"b"]}) == {"text:0": ["a", b"b"]}
    with pytest.raises(tf.errors.InternalError, match="Unsupported object type float"):
        read(graph, {text: ["a", 5.5]})


def test_tensors_as_values(graph, x, f):
    with pytest.raises(TypeError, match=r"The value of a feed cannot be a tf.Tensor.*key Tensor"):
        read(graph, {x: f})


def test_tensors_that_may_not_be_fed(graph, f):
    graph.prevent_feeding(f)
    with pytest.raises(ValueError, match=r"^Tensor f:0 may not be fed\.$"):
        read(graph, {f: 1.0})
    with pytest.raises(ValueError, match=r"^Cannot feed value of shape \(1,\) for Tensor f:0, "):
        read(graph, {f: [1.0]})
