import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.graph import graph_text

NUMBERS = [0.9, 1e-6, -1e4, 1 / 3, np.pi, 1e30, np.inf, -np.inf, np.nan, 1e-40, 16777217.0, -0.0]


def numbers():
    for dtype in (tf.float32, tf.float64, tf.complex64, tf.bfloat16):
        for number in NUMBERS:
            tf.constant(number, dtype)
    tf.constant(np.random.RandomState(0).randn(3, 4))
    tf.nn.fused_batch_norm(tf.zeros([1, 2, 2, 3]), tf.ones([3]), tf.ones([3]), epsilon=1e-3)


def strings():
    tf.constant([b"a\n\"'\xc3\xbc\x00\xff", b"\t\\ x\x7f?", b"  attr {\n"])
    tf.constant("ü€")


def functions():
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: x * 1.5, lambda: tf.nn.swish(x))
    tf.gradients(tf.while_loop(lambda y: tf.reduce_sum(y) < 3, lambda y: [y + 0.1], [y]), x)


def a_training_step():
    x = tf.placeholder(tf.float32, [None, 3])
    weights = tf.get_variable("weights", [3, 2])
    loss = tf.reduce_mean(tf.nn.l2_loss(tf.matmul(x, weights)))
    tf.train.AdamOptimizer(0.01).minimize(loss)
    tf.train.Saver(sharded=True)


def nothing():
    pass


def test_another_protobuf_than_the_known_ones_is_not_relied_on(monkeypatch):
    graph_def = tf.GraphDef(node=[{"name": "a", "op": "NoOp"}])
    text = graph_text.text_of(graph_def)
    graph_text._prints_alike.cache_clear()
    assert graph_text._prints_alike()
    graph_text._prints_alike.cache_clear()
    monkeypatch.setattr(graph_text, "_text_of", lambda node: "# not to be parsed")
    assert graph_text.text_of(graph_def) == text
    graph_text._prints_alike.cache_clear()


def test_texts_of_another_graph_are_not_taken():
    names = [str(i) for i in range(3)]
    graphs = [
        tf.GraphDef(node=[{"name": n, "op": "NoOp", "input": names[:i]}])
        for i, n in enumerate(names)
    ]
    first = [graph_text.text_of(graph) for graph in graphs]
    assert [graph_text.text_of(graph) for graph in reversed(graphs)] == first[::-1]
    assert [str(graph) for graph in graphs] == first


@pytest.mark.parametrize("build", [numbers, strings, functions, a_training_step, nothing])
def test_the_text_is_tensorflows(tmp_path, build):
    graph = tf.Graph()
    with graph.as_default():
        build()
    graph_def = graph.as_graph_def(add_shapes=True)
    tf.io.write_graph(graph_def, str(tmp_path), "theirs.pbtxt")
    graph_text.write_text(graph_def, str(tmp_path / "new" / "ours.pbtxt"))
    assert (tmp_path / "new" / "ours.pbtxt").read_bytes() == (
        (tmp_path / "theirs.pbtxt").read_bytes()
    )
