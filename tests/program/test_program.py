"""Replica programs: pruning, stages, resources, and the session on top of them."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.program import graph_def, graph_ops
from tpu_estimator_compat.program.replica_program import ReplicaProgram
from tpu_estimator_compat.runtime import eager


def test_only_what_is_fetched_runs(graph, session):
    counter = tf.get_variable("counter", [], tf.int32, tf.zeros_initializer())
    wanted = tf.assign_add(counter, 1)
    tf.assign_add(counter, 100)
    session.run(counter.initializer)
    assert session.run(wanted) == 1
    assert session.run(wanted) == 2
    assert session.run(counter) == 2


def test_uninitialized_variables_say_so(graph, session):
    variable = tf.get_variable("variable", [2])
    report = tf.report_uninitialized_variables()
    assert session.run(report).tolist() == [b"variable"]
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value variable"):
        session.run(variable)
    session.run(variable.initializer)
    assert session.run(report).tolist() == []


def test_large_variables_that_are_filled_alike_have_buffers_of_their_own(graph, session):
    """The first update of one that shared its buffer would copy it."""
    shape = [1024, 2600]  # TensorFlow folds up to 10 MiB into constants, of which there is one
    for i in range(3):
        tf.get_variable(f"zeros_{i}", shape, initializer=tf.zeros_initializer())
    for i in range(2):
        tf.get_variable(f"ones_{i}", shape, initializer=tf.ones_initializer())
    variables = tf.global_variables()
    session.run(tf.global_variables_initializer())
    with eager.eager_mode():
        handles = [session.store[v.op.name].handle for v in variables]
        values = [tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) for h in handles]
        arrays = [np.asarray(memoryview(value)) for value in values]
    assert [array.min() for array in arrays] == [0, 0, 0, 1, 1]
    assert [array.max() for array in arrays] == [0, 0, 0, 1, 1]
    assert len({array.ctypes.data for array in arrays}) == len(variables)


def test_initial_values_that_depend_on_each_other(graph, session):
    first = tf.get_variable("first", initializer=tf.constant([1.0, 2.0]))
    second = tf.get_variable("second", initializer=first * 2)
    session.run(tf.global_variables_initializer())
    np.testing.assert_array_equal(session.run(second), [2.0, 4.0])


def test_fetch_structures_names_and_feeds(graph, session):
    x = tf.placeholder(tf.float32, [None], name="x")
    doubled = tf.multiply(x, 2.0, name="doubled")
    found = session.run({"a": [doubled, "x:0"], "op": doubled.op}, {x: [1.0, 2.0]})
    assert found["a"][0].tolist() == [2.0, 4.0]
    assert found["a"][1].tolist() == [1.0, 2.0]
    assert found["op"] is None
    assert session.run("doubled:0", {"x:0": [3]}).tolist() == [6.0]
    assert session.run(doubled + 1, {doubled: [5.0]}).tolist() == [6.0]


def test_sparse_values_and_strings(graph, session):
    matrix = tf.sparse_placeholder(tf.float32)
    total = tf.sparse.reduce_sum(matrix)
    value = tf.SparseTensorValue([[0, 0], [1, 2]], [1.0, 2.0], [2, 3])
    assert session.run(total, {matrix: value}) == 3.0
    assert session.run(matrix, {matrix: value}).values.tolist() == [1.0, 2.0]
    assert session.run(tf.strings.join(["a", "b"])) == b"ab"


def test_bad_feeds_and_closed_sessions(graph, session):
    x = tf.placeholder(tf.float32, [2], name="x")
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        session.run(x, {x: [1.0]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value for place"):
        session.run(x + 1)
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(tf.constant(1))


def test_tables_and_their_initializers(graph, session):
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a"], [7]), default_value=-1
    )
    found = table.lookup(tf.constant(["a", "b"]))
    session.run(tf.tables_initializer())
    assert session.run(found).tolist() == [7, -1]


def test_saver_writes_and_reads_tf1_checkpoints(graph, session, tmp_path):
    variable = tf.get_variable("scope/variable", [3], initializer=tf.ones_initializer())
    saver = tf.train.Saver(sharded=True)
    session.run(tf.global_variables_initializer())
    path = saver.save(session, str(tmp_path / "model.ckpt"), global_step=3)
    assert tf.train.load_checkpoint(path).get_tensor("scope/variable").tolist() == [1.0] * 3
    session.run(tf.assign(variable, [5.0] * 3))
    saver.restore(session, path)
    assert session.run(variable).tolist() == [1.0] * 3


def test_tensor_eval_in_a_default_session(graph, session):
    with session.as_default():
        assert tf.get_default_session() is session
        assert tf.constant(4).eval() == 4


def test_stages_end_at_collectives(graph):
    from tensorflow.python.tpu import tpu_function

    x = tf.placeholder(tf.float32, [2])
    with tpu_function.tpu_shard_context(2):
        once = tf.tpu.cross_replica_sum(x * 2)
        twice = tf.tpu.cross_replica_sum(once + 1)
        other = tf.tpu.cross_replica_sum(x * 3)
    program = ReplicaProgram(graph, [x], [twice + other], replicas=2)
    assert [len(stage.collectives) for stage in program.stages] == [2, 1, 0]
    alone = ReplicaProgram(graph, [x], [twice + other], replicas=1)
    assert [len(stage.collectives) for stage in alone.stages] == [0]


def test_stages_keep_the_order_of_reads_and_writes(graph):
    """A read that was made after a write gives the new value, though nothing else orders them."""
    from tensorflow.python.tpu import tpu_function

    variable = tf.get_variable("v", [2], use_resource=True)
    before = variable.read_value()
    with tpu_function.tpu_shard_context(2):
        written = variable.assign(tf.tpu.cross_replica_sum(before)).op
    after = variable.read_value()
    program = ReplicaProgram(graph, [], [after], [written], replicas=2)
    first, last = ({op.name for op in stage.ops} for stage in program.stages)
    assert before.op.name in first
    assert {written.name, after.op.name} <= last


def test_control_inputs_on_fed_placeholders_do_not_import_them(graph, session):
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([x]):
        after = tf.constant(2.0) * x
    assert session.run(after, {x: 3.0}) == 6.0


def test_functions_are_copied_only_where_they_are_called(graph):
    with_loop = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
    plain = tf.constant(1) + 1
    assert graph_def.subgraph_def(graph, graph_ops.ancestors([with_loop.op], ())).library.function
    assert not graph_def.subgraph_def(graph, graph_ops.ancestors([plain.op], ())).library.function


def test_graphs_captured_under_v1_behavior_are_importable():
    import subprocess
    import sys

    code = """
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
import numpy as np, tempfile
import tpu_estimator_compat as tpu
def model_fn(features, labels, mode, params):
    w = tf.get_variable("w", [])
    x = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + features), (0, features))[1]
    loss = tf.reduce_mean(tf.square(x * w - labels))
    op = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=op)
def input_fn(params):
    return tf.data.Dataset.from_tensors((np.ones(4, "f"), np.ones(4, "f"))).repeat()
assert tf.constant([[1]]).shape[0].value == 1
config = tpu.RunConfig(model_dir=tempfile.mkdtemp())
estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=4)
estimator.train(input_fn, steps=60)

assert abs(estimator.get_variable_value("w") - 0.25) < 0.1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
