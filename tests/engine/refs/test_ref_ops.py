"""Every operation on ref variables does what a session of TensorFlow does with it."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import judged

from tpu_estimator_compat.engine.refs import ref_ops
from tpu_estimator_compat.tf_internals import op_def_registry

NOT_VARIABLES = {tf.string.as_datatype_enum}
"""Types of refs of queues, tables, readers, barriers and accumulators."""
OTHERS = {
    *("RefIdentity", "RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefNextIteration"),
    "DebugGradientRefIdentity",  # of tfdbg, which has a session of its own
    "SdcaShrinkL1",  # of SDCA, which makes resource variables
    "RefSelect",
    "DestroyTemporaryVariable",
}
"""Those that do not write, below or refused."""


def _takes_variables(op_type):
    definition = op_def_registry.get(op_type)
    refs = [a for a in definition.input_arg if a.is_ref] if definition else []
    return bool(refs) and refs[0].type not in NOT_VARIABLES


ALL = [name for name in sorted(dir(tf.raw_ops)) if _takes_variables(name)]
WRITES = [name for name in ALL if name not in OTHERS]
SCALARS = {
    **{"lr": 0.5, "alpha": 0.25, "rho": 0.9, "epsilon": 0.1, "beta1": 0.8, "beta2": 0.7},
    **{"beta1_power": 0.64, "beta2_power": 0.49, "beta": 0.9, "sign_decay": 0.5, "logbase": 1.5},
    **{"l1": 0.01, "l2": 0.02, "l2_shrinkage": 0.1, "lr_power": -0.5, "momentum": 0.9},
}
INDICES = np.array([2, 0], np.int32)


def _arguments(op_type):
    """Arguments of an operation on variables of three rows, and what makes the variables."""
    definition = op_def_registry.get(op_type)
    random = np.random.RandomState(0)
    rows = 2 if "Scatter" in op_type or "Sparse" in op_type else 3
    others = {
        "indices": INDICES[:, None] if op_type.startswith("ScatterNd") else INDICES,
        "global_step": np.int64(3),
        **{"begin": [0, 1], "end": [3, 2], "strides": [1, 1]},
        "value": random.uniform(size=(3, 1 if "Slice" in op_type else 2)).astype("f4"),
    }
    made, starts = {}, []
    for argument in definition.input_arg:
        name = argument.name
        if argument.is_ref:
            initial = random.uniform(0.5, 1.0, (3, 2)).astype("f4")
            made[name], start = judged.variable(name, initial)
            starts.append(start)
        elif name in SCALARS:
            made[name] = SCALARS[name]
        elif name in others:
            made[name] = others[name]
        else:  # "grad", "delta", "updates"
            made[name] = random.uniform(0.5, 1.0, (rows, 2)).astype("f4")
    return made, starts


@pytest.mark.parametrize(
    "op_type", [name for name in WRITES if name not in ("CountUpTo", "IsVariableInitialized")]
)
def test_a_write(op_type):
    """Its result, reads made before it and looked at after it, and what depends on neither."""

    def build():
        arguments, starts = _arguments(op_type)
        refs = [each for each in arguments.values() if isinstance(each, tf.Tensor)]
        reads = [tf.identity(ref) for ref in refs]
        before = [read * 1.0 for read in reads]
        with tf.control_dependencies(before):
            result = getattr(tf.raw_ops, op_type)(**arguments)
        with tf.control_dependencies([result.op]):
            after = [read * 1.0 for read in reads]
        return starts, [*before, *after, result * 1.0]

    judge = judged.in_sessions(build)
    refs = (len(judge[0]) - 1) // 2
    assert any((judge[0][i] != judge[0][refs + i]).any() for i in range(refs))


def test_a_count_up_to_a_limit():
    def build():
        ref, start = judged.variable("counter", np.int64(5))
        counted = tf.raw_ops.CountUpTo(ref=ref, limit=7)
        with tf.control_dependencies([counted]):
            return [start], [counted * 1, tf.identity(ref)]

    assert judged.in_sessions(build) == [[5, 6], [6, 7]]


def test_a_question_whether_a_variable_is_initialized():
    def build():
        ref, start = judged.variable("known", 1.0)
        unknown, _ = judged.variable("unknown", 1.0)
        asked = [tf.raw_ops.IsVariableInitialized(ref=each) for each in (ref, unknown)]
        return [start], asked

    assert judged.in_sessions(build) == [[True, False]] * 2


def test_a_ref_through_an_identity_follows_what_that_waits_for():
    def build():
        ref, start = judged.variable("v", 1.0)
        written = tf.raw_ops.AssignAdd(ref=ref, value=2.0)
        with tf.control_dependencies([written.op]):
            passed = tf.raw_ops.RefIdentity(input=ref)
        again = tf.raw_ops.AssignAdd(ref=passed, value=10.0)
        return [start], [again * 1.0]

    assert judged.in_sessions(build) == [[13.0], [25.0]]


def test_an_operation_without_a_twin_is_refused_in_words():
    with tf.Graph().as_default() as graph:
        ref, _ = judged.variable("a", 1.0)
        tf.raw_ops.DestroyTemporaryVariable(ref=ref, var_name="a")
    with pytest.raises(NotImplementedError, match=r"Variable\) takes the ref variable 'a'"):
        judged.on_resources(graph)


def test_what_takes_no_refs_and_no_operation_of_tensorflow():
    assert ref_ops.ref_op("Add") is None
    assert ref_ops.ref_op("a_function_of_ours") is None
