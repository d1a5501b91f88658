"""Proofs of inputs of exported models."""

import tensorflow.compat.v1 as tf

from support.proofs import graph, proves

LEARN = "tf.contrib.learn"
INSIDE = f"{LEARN}.python.learn"


@proves(f"{LEARN}.InputFnOps")
def has_inputs(ops):
    assert ops(1, None, 2).default_inputs == 2


@proves(f"{LEARN}.build_parsing_serving_input_fn")
def parses(build):
    with graph():
        ops = build({"x": tf.FixedLenFeature([], tf.float32)})()
        assert ops.features["x"].dtype == tf.float32
        assert list(ops.default_inputs) == ["examples"]


@proves(f"{INSIDE}.utils.input_fn_utils", f"{LEARN}.utils.input_fn_utils")
def receives(module):
    with graph():
        ops = module.build_default_serving_input_fn({"x": tf.constant([[1.0]])})()
        assert ops.features["x"].shape.as_list() == [None, 1]
