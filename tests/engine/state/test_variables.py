"""Variables without a value: what reads and writes of them do."""

import gc

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.state.variables import VariableStore, components

UNKNOWN = ["mine"]  # a collection that no ready op knows


def _unknown(use_resource=True):
    ones = tf.ones_initializer()
    return tf.get_variable(
        "scope/v", [2], initializer=ones, collections=UNKNOWN, use_resource=use_resource
    )


@pytest.mark.parametrize("use_resource", [True, False])
@pytest.mark.parametrize(
    "use", [lambda v: v * 2, lambda v: tf.gather(v, [0]), lambda v: tf.assign_add(v, [1.0, 1.0])]
)
def test_use_of_a_variable_without_a_value_fails(use, use_resource, graph, session):
    variable = _unknown(use_resource)
    used = use(variable)
    words = "localhost/scope/v/N10" if use_resource else "uninitialized value scope/v$"
    errors = tf.errors.NotFoundError, tf.errors.FailedPreconditionError
    with pytest.raises(errors[not use_resource :]) as caught:
        session.run(used)
    assert "@" not in caught.value.message
    caught.match(f"(?m){words}")
    session.run(variable.initializer)
    session.run(used)


def test_read_in_a_branch_fails_where_it_is_taken(graph, session):
    variable, taken = _unknown(), tf.placeholder(tf.bool, [])
    read = tf.cond(taken, lambda: variable * 2, lambda: tf.zeros([2]))
    assert session.run(read, {taken: False}).tolist() == [0, 0]
    with pytest.raises(tf.errors.FailedPreconditionError, match="Could not find variable scope/v"):
        session.run(read, {taken: True})


def test_write_before_a_read_gives_the_value(graph, session):
    variable = _unknown()
    with tf.control_dependencies([tf.assign(variable, [1.0, 2.0])]):
        read = variable.read_value() * 2
    has_value = tf.is_variable_initialized(variable)
    assert not session.run(has_value)
    assert session.run(read).tolist() == [2, 4]
    assert session.run(has_value)


def test_only_variables_outside_the_ready_op_cost_a_kernel(graph):
    known = tf.get_variable("known", [2])
    store = VariableStore(tf.distribute.get_strategy())
    store.prepare([known.op, _unknown().op])
    assert not hasattr(store["known"], "_handle_deleter")
    assert hasattr(store["scope/v"], "_handle_deleter")


def test_own_ready_op_reports_none(graph):
    known = tf.get_variable("known", [2])
    store = VariableStore(tf.distribute.get_strategy())
    store.has_own_ready_op = True
    read = known * 2
    with pytest.raises(tf.errors.FailedPreconditionError, match="variable known"):
        GraphSession(graph, store).run(read)


def test_memory_of_a_variable_is_freed_with_its_store(graph):
    variable = _unknown()
    store = VariableStore(tf.distribute.get_strategy())
    GraphSession(graph, store).run(variable.initializer)
    handle = store["scope/v"].handle
    with eager.eager_mode():
        assert bool(tf.raw_ops.VarIsInitializedOp(resource=handle))
        del store
        gc.collect()
        assert not bool(tf.raw_ops.VarIsInitializedOp(resource=handle))


def test_replicas_are_left_alone_by_a_branch_that_writes_nothing(graph, strategy):
    variable, taken = _unknown(), tf.placeholder(tf.bool, [])
    store = VariableStore(strategy(2))
    store.prepare([variable.op], replicated=True)
    written = tf.cond(taken, lambda: tf.assign(variable, [1.0, 2.0]), lambda: tf.zeros([2]))
    session = GraphSession(graph, store)
    assert session.run(written, {taken: False}).tolist() == [0, 0]
    session.run(written, {taken: True})
    with eager.eager_mode():
        assert [c.numpy().tolist() for c in components(store["scope/v"])] == [[1, 2], [1, 2]]
