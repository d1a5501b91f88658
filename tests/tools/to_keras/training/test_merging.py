"""Programs of several modes become one, which is each of them in its mode."""

import numpy as np
import pytest
import tensorflow as tf
from tools.to_keras import running

import tpu_estimator_compat.v1 as tf1
from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.layers import recognize
from tpu_estimator_compat.tools.to_keras.training.merging import CrossedError, Merged

v1 = tf.compat.v1
SPECS = {"x": ("float32", (None, 3))}


def dense(x, name, **options):
    return tf1.layers.dense(x, 3, name=name, **options)


def plain(x, trains):
    return dense(tf.nn.relu(dense(x, "a")), "b")


def dropped(x, trains):
    x = tf1.layers.dropout(dense(x, "a"), 0.5, training=trains)
    return dense(x, "b") + tf1.layers.dropout(x, 0.5, training=trains)


def normalized(x, trains):
    x = dense(x, "a")
    return dense(tf1.layers.batch_normalization(x, training=trains, name="norm"), "b")


def frozen(x, trains):
    return dense(tf1.layers.batch_normalization(dense(x, "a"), name="norm"), "b")


def masked(x, trains):
    x = dense(x, "a")
    return dense(x * [1.0, 0.0, 2.0] if trains else x, "b")


def penalized(x, trains):
    y = v1.reduce_sum(dense(x, "a"))
    return y + 0.1 * v1.nn.l2_loss(x) if trains else y


def swapped(x, trains):
    first, second = ("a", "b") if trains else ("b", "a")
    return dense(dense(x, first), second)


def drops_always(x, trains):
    return dense(tf1.layers.dropout(dense(x, "a"), 0.5, training=True), "b")


def twice(x, trains):
    return dense(tf.nn.tanh(x), "a") + dense(tf.nn.tanh(x), "b") * (2.0 if trains else 1.0)


def programs(build):
    """Programs of training and of the other modes, on the same weights."""
    found, known = [], {}
    for trains in (True, False):

        def built(x, trains=trains):
            for name in ("a", "b"):
                dense(tf.zeros([1, 3]), name)
            with v1.variable_scope("", reuse=v1.AUTO_REUSE):
                return build(x, trains)

        program, weights, feeds, _ = running.program_of(built, SPECS)
        known = {**weights, **known}
        for node in program.nodes():
            if node.kind == g.WEIGHT:
                node.attrs["weight"] = known[node.attrs["weight"].name]
        recognize(program, known)
        found.append(program)
    return *found, feeds


def merge(train, other):
    train, other = train.outputs["out"], other.outputs["out"]
    try:
        value = Merged([train], [other]).pair(train, other)
    except CrossedError:
        value = Merged([train], [other], aligns=False).pair(train, other)
    program = g.Program({}, {"out": value})
    program.inputs["x"] = next(n.outputs[0] for n in program.nodes() if n.kind == g.INPUT)
    return program


def run(program, feeds, trains):
    return running.run(program, feeds, training=trains)["out"]


@pytest.mark.parametrize(
    ("build", "chosen", "calls"),
    [
        (plain, 0, ["Dense", "Dense"]),
        (dropped, 0, ["Dense", "Dropout training", "Dense", "Dropout training"]),
        (normalized, 0, ["Dense", "BatchNormalization training", "Dense"]),
        (frozen, 0, ["Dense", "BatchNormalization False", "Dense"]),
        (masked, 1, ["Dense", "Dense"]),
        (penalized, 1, ["Dense"]),
        (swapped, 1, ["Dense"] * 4),
        (drops_always, 0, ["Dense", "Dropout True", "Dense"]),
        (twice, 1, ["Dense", "Dense"]),
    ],
)
def test_merged(build, chosen, calls):
    """`chosen` values depend on the mode, and the layers are called as often as in one mode."""
    train, other, feeds = programs(build)
    nodes = merge(train, other).nodes()
    assert sum(node.kind == g.EXPRESSION for node in nodes) == chosen
    layers = [node.layer for node in nodes if node.kind == g.LAYER]
    said = [f"{x.cls[7:]} {x.call['training'].text if x.call else ''}".strip() for x in layers]
    assert sorted(said) == sorted(calls)
    if "Dropout training" in calls or "Dropout True" in calls:
        return
    for trains, original in ((True, train), (False, other)):
        program = merge(train, other)
        for node in program.nodes():
            if node.kind == g.EXPRESSION:  # what the text says
                program.replace(node.outputs[0], node.inputs[0 if trains else 1])
            if node.kind == g.LAYER and node.layer.call:
                node.layer.call["training"] = trains and node.layer.call["training"] == g.TRAINING
        np.testing.assert_allclose(
            run(program, feeds, trains), run(original, feeds, trains), rtol=1e-5
        )
