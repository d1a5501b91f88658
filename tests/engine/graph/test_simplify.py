import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.graph import graph_def, graph_ops, simplify
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


def types(program):
    return [op.type for op in program.ops]


def nodes(graph, ops, kept=()):
    ordered = graph_ops.in_creation_order(ops)
    instead = simplify.repeated_reads(ordered, set(kept))
    return graph_def.subgraph_def(graph, ordered, instead=instead).node


def training_step():
    def dense(x, units, name):
        kernel = tf.get_variable(f"{name}/kernel", [x.shape[1], units])
        bias = tf.get_variable(f"{name}/bias", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)

    x = tf.placeholder(tf.float32, [2, 3])
    hidden = tf.nn.relu(dense(x, 4, "first"))
    loss = tf.reduce_mean(tf.square(dense(hidden, 1, "second")))
    return x, loss, tf.train.AdamOptimizer(0.1).minimize(loss)


def test_the_gradient_by_the_input_is_left_out(graph):
    x, loss, train_op = training_step()
    program = ReplicaProgram(graph, [x], [loss], [train_op])
    # Two layers forward, two gradients by kernels, one by what the first layer gave.
    assert types(program).count("MatMul") == 5
    assert not [op.name for op in program.ops if op.name.endswith("tuple/group_deps")]


def test_numbers_are_those_of_a_tf1_session(graph, session):
    tf.set_random_seed(1)
    x, loss, train_op = training_step()
    fed = {x: np.arange(6, dtype=np.float32).reshape(2, 3)}
    weights = tf.trainable_variables()
    with tf.Session(graph=graph) as original:
        original.run(tf.global_variables_initializer())
        first = original.run(weights)
        expected = [original.run([loss, train_op], fed)[0] for _ in range(5)]
        last = original.run(weights)
    session.run(tf.global_variables_initializer())
    for variable, value in zip(weights, first, strict=True):
        variable.load(value, session)
    found = [session.run([loss, train_op], fed)[0] for _ in range(5)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    for ours, theirs in zip(session.run(weights), last, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("how", ["of the gate", "of a tensor", "of a tensor's input"])
def test_a_gate_is_kept_for_effects(graph, session, how):
    counter = tf.get_variable("counter", [], tf.int32, tf.zeros_initializer())
    session.run(counter.initializer)
    count = counter.assign_add(1, read_value=False)
    wanted, other = tf.constant(2.0), tf.constant(3.0)
    waits = [count] if how == "of the gate" else []
    if how != "of the gate":
        with tf.control_dependencies([count]):
            other = tf.identity(other)
    if how == "of a tensor's input":
        other = other * 2.0
    held, _ = tf.tuple([wanted, other], control_inputs=waits)
    assert session.run(held) == 2.0
    assert session.run(counter) == 1


def test_a_gate_is_kept_for_a_check(graph, session):
    checked = tf.check_numerics(tf.log(tf.constant(-1.0)), "not a number")
    held, _ = tf.tuple([tf.constant(2.0), checked])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a number"):
        session.run(held)


def test_a_gate_is_kept_for_an_op_that_waits_on_it_otherwise(graph):
    value = tf.constant(1.0)
    [held] = tf.tuple([value])
    gate = held.op.control_inputs[0]
    assert simplify.idle_gates([value.op, gate, held.op]) == {gate}
    with tf.control_dependencies([gate]):
        now = tf.timestamp()
    assert simplify.idle_gates([value.op, gate, held.op, now.op]) == set()


def test_a_gate_that_was_given_more_to_wait_for_later_is_kept(graph):
    value = tf.constant(1.0)
    [held] = tf.tuple([value])
    gate, now = held.op.control_inputs[0], tf.timestamp()
    gate._add_control_input(now.op)
    assert simplify.idle_gates([value.op, gate, held.op, now.op]) == set()


def test_a_variable_is_read_once_until_it_is_written(graph, session):
    variable = tf.get_variable("variable", [], initializer=tf.zeros_initializer())
    session.run(variable.initializer)
    before = [variable.read_value().op.inputs[0] for _ in range(3)]
    with tf.control_dependencies([tf.assign_add(variable, 1.0)]):
        after = [variable.read_value() for _ in range(2)]
    total = tf.add_n([tf.add_n(before), *(10.0 * t for t in after)])
    ops = ReplicaProgram(graph, [], [total]).ops
    assert sum(op.type == "ReadVariableOp" for op in ops) >= 5
    assert sum(node.op == "ReadVariableOp" for node in nodes(graph, ops)) == 2
    assert session.run(total) == 20.0
    assert session.run(total) == 43.0


def test_what_is_fetched_stays(graph, session):
    variable = tf.get_variable("variable", initializer=tf.constant(3.0))
    session.run(variable.initializer)
    reads = [variable.read_value().op.inputs[0] for _ in range(2)]
    total = reads[0] + reads[1]
    assert session.run([total, *reads, reads[1].op]) == [6.0, 3.0, 3.0, None]


def test_reads_of_other_waits_writes_or_names_stay(graph):
    variable = tf.get_variable("variable", [], initializer=tf.zeros_initializer())
    first = variable.read_value().op.inputs[0].op
    with tf.control_dependencies([tf.timestamp()]):
        waiting = variable.read_value().op.inputs[0].op
    assert simplify.repeated_reads([first, waiting], set()) == {}
    second = variable.read_value().op.inputs[0].op
    assert simplify.repeated_reads([first, second], set()) == {second.name: first.name}
    written = variable.assign_add(1.0, read_value=False)
    third = variable.read_value().op.inputs[0].op
    assert simplify.repeated_reads([first, written, third], set()) == {}
    alias = tf.identity(variable.handle)
    third = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=tf.float32).op
    tf.raw_ops.AssignVariableOp(resource=alias, value=1.0)
    fourth = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=tf.float32).op
    assert simplify.repeated_reads([alias.op, third, fourth], set()) == {}


def taken_out(tensor, of):
    """What the host takes out of a vector, of all that `of` makes of it; by name."""
    placeholder = tf.placeholder(tensor.dtype, tensor.shape)
    made = of(placeholder)
    found = dict(simplify.sole_elements([(placeholder, tensor)]))
    return [(name, found[t]) for name, t in made.items() if t in found]


def test_a_scalar_in_a_vector_of_one_is_taken_as_it_is(graph):
    scalar = tf.constant(3.0)

    def of(x):
        return {"first": x[0], "same": x[0], "last": x[-1], "slice": x[:1], "new": x[tf.newaxis, 0]}

    for vector in (tf.reshape(scalar, [1]), tf.expand_dims(scalar, 0)):
        assert taken_out(vector, of) == [("first", scalar), ("same", scalar)]


def test_what_was_no_scalar_stays_a_vector(graph):
    for tensor in (
        tf.reshape(tf.constant([3.0]), [1]),
        tf.reshape(tf.constant(3.0), [1, 1]),
        tf.constant([3.0]),
    ):
        assert not taken_out(tensor, lambda x: {"first": x[0]})


def test_a_read_that_waits_for_nothing_comes_before_the_writes(graph):
    variable = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    before = variable.read_value()
    written = tf.assign_add(variable, 1.0)
    free = tf.reshape(variable.read_value(), [1])
    with tf.control_dependencies([written]):
        after = variable.read_value()
    ops = graph_ops.in_creation_order(
        graph_ops.ancestors([t.op for t in (before, written, free, after)], ())
    )
    reads = [op.name for op in simplify.reads_first(ops) if op.type == "ReadVariableOp"]
    early = free.op.inputs[0].op
    while early.type != "ReadVariableOp":
        early = early.inputs[0].op
    assert reads[0] == early.name
    assert sorted(reads) == sorted(op.name for op in ops if op.type == "ReadVariableOp")


def test_keras_code_reads_where_it_is_written(graph):
    """Two draws from one generator of seeds differ, since the second reads what the first wrote."""
    generator = keras.random.SeedGenerator(1)
    draws = [keras.random.uniform([4], seed=generator) for _ in range(2)]
    ops = graph_ops.in_creation_order(graph.get_operations())
    assert simplify.reads_first(ops) == ops
    assert len({draw.name for draw in draws}) == 2
