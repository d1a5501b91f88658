"""Where a program is cut, and what comes into which stage."""

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat.engine.step import stages
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


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


def test_a_write_waits_for_a_read_that_was_made_before_it(tmp_path, strategy):
    """The read waits for an exchange; the write by itself could be in the stage before that."""

    def train_op(loss, params):
        step = tf.train.get_global_step()
        count, seen = (tf.get_variable(name, [], tf.int64, tf.zeros_initializer()) for name in "ab")
        with tf.control_dependencies([tf.tpu.cross_replica_sum(loss)]):
            before = count.read_value()
        return tf.group(count.assign_add(1), seen.assign(before), step.assign_add(1))

    estimator = make_estimator(
        tmp_path, make_model_fn(train_op), use_tpu=True, train_distribute=strategy(2)
    )
    estimator.train(train_input_fn, steps=3)
    assert [estimator.get_variable_value(name) for name in "ab"] == [3, 2]


class TestPostponing:
    """What only a later stage needs is computed there."""

    @pytest.fixture
    def cut(self, graph):
        """`cut(sums, fetches, *stops)`: names of the operations in each stage."""

        def of(ends, fetches, stops=()):
            ops = [op for op in graph.get_operations() if op.type != "VarHandleOp"]
            handles = {(op.name, 0) for op in graph.get_operations() if op.type == "VarHandleOp"}
            made = stages.cut(ops, fetches, {*stops, *handles}, exchanged={t.op for t in ends})
            return [{op.name for op in stage.ops} for stage in made]

        return of

    def test_what_waits_for_nothing(self, cut):
        x, slot = tf.constant(1.0, name="x"), tf.constant(2.0, name="slot")
        total = tf.tpu.cross_replica_sum(tf.square(x, name="gradient"))
        half = tf.multiply(slot, slot, name="half")
        first, second = cut([total], [tf.add(total, half, name="new")])
        assert "gradient" in first
        assert "half" not in first
        assert {"slot", "half", "new"} <= second

    def test_a_read_waits_unless_something_is_written(self, cut):
        variables = [tf.get_variable(name, [], use_resource=True) for name in ("a", "b")]
        x = tf.constant(1.0, name="x")
        read = [tf.identity(v.read_value(), name=f"{v.op.name}_read") for v in variables]
        total = tf.tpu.cross_replica_sum(tf.square(x))
        with tf.control_dependencies([variables[1].assign(x, read_value=False)]):
            written = tf.identity(x, name="written")
        once = tf.tpu.cross_replica_sum(written)
        result = tf.add_n([*read, total, once], name="result")
        first, second = cut([total, once], [result])
        assert "a_read" in second
        assert "written" in first
        reads = [{n for n in ops if n.startswith("b") and "Read" in n} for ops in (first, second)]
        assert reads[0]
        assert not reads[1] - reads[0]

    def test_what_is_fetched_or_exchanged_stays(self, cut):
        x = tf.constant(1.0, name="x")
        loss = tf.square(x, name="loss")
        total = tf.tpu.cross_replica_sum(loss)
        first, _ = cut([total], [loss, tf.add(total, loss, name="later")])
        assert "loss" in first
