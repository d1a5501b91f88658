import tensorflow.compat.v1 as tf
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.tpu import tpu_function

from support.proofs import proves, variables_of

UTIL = "tf.python.ops.control_flow_util"


@proves("tf.python.tpu.tpu.TPUReplicateContext")
def is_a_context(context):
    assert issubclass(context, control_flow_ops.XLAControlFlowContext)


@proves(f"{UTIL}.GetContainingXLAContext")
def finds_xlas_context(containing):
    context = control_flow_ops.XLAControlFlowContext()
    assert containing(context) is context
    assert containing(None) is None
    with tpu_function.tpu_shard_context(1):
        assert containing(None).IsXLAContext()


@proves(f"{UTIL}.InXlaContext", f"{UTIL}.GraphOrParentsInXlaContext", f"{UTIL}.IsInXLAContext")
def asks_a_graph_or_an_operation(in_xla):
    with tf.Graph().as_default() as graph:
        asked = tf.no_op() if in_xla.__name__ == "IsInXLAContext" else graph
        assert not in_xla(asked)
        with tpu_function.tpu_shard_context(1):
            assert in_xla(asked)


@proves("tf.layers")
def has_dense(layers):
    assert variables_of(lambda: layers.dense(tf.ones([2, 3]), 4)) == ["dense/kernel", "dense/bias"]
