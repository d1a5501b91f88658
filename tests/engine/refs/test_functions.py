"""Branches and loops that write to variables do what they did in the graph around them."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import judged

ONES = np.ones([2], "f4")


def writes_in_one_branch(v, u, step):
    return [tf.cond(step > 1, lambda: tf.assign_add(u, v), lambda: tf.identity(u)) + 0.0]


def another_write_in_each_branch(v, u, step):
    taken = tf.cond(step > 1, lambda: tf.assign_add(u, v), lambda: tf.assign_sub(v, [0.5, 0.5]))
    with tf.control_dependencies([taken]):
        return [u * 2.0, v * 2.0]


def a_read_after_a_branch_that_writes(v, u, step):
    read = tf.identity(v)
    before = read * 2.0
    with tf.control_dependencies([before]):
        written = tf.cond(step > 1, lambda: tf.assign_add(v, u + 3.0), lambda: tf.identity(v))
    with tf.control_dependencies([written]):
        return [before, read * 2.0]


def a_read_within_a_branch_after_its_write(v, u, step):
    read = tf.reshape(tf.identity(v), [1, 2])

    def write():
        with tf.control_dependencies([tf.assign(v, [7.0, 8.0])]):
            return read * 2.0

    return [tf.cond(step > 1, write, lambda: read * 3.0)]


def a_branch_that_returns_what_it_took(v, u, step):
    read = tf.identity(v)

    def write():
        with tf.control_dependencies([tf.assign_add(v, ONES)]):
            return tf.identity(v), tf.identity(v)

    return list(tf.cond(step > 2, write, lambda: (read, read)))


def a_loop_that_writes(v, u, step):
    def body(i):
        with tf.control_dependencies([tf.assign_add(u, ONES)]):
            return i + tf.reduce_sum(u) * 0.1

    return [tf.while_loop(lambda i: i < 5.0, body, [0.0])]


def a_loop_that_looks_before_it_writes(v, u, step):
    """Its second iteration sees the first one's write, in a read from outside."""
    read = tf.reshape(tf.identity(u), [1, 2])

    def body(i, total):
        seen = tf.reduce_sum(read * 2.0)
        with tf.control_dependencies([seen]):
            written = tf.assign_add(u, ONES)
        with tf.control_dependencies([written]):
            return i + 1, total + seen

    return tf.while_loop(lambda i, t: i < 3, body, [0, 0.0], parallel_iterations=1)


def a_loop_until_a_variable_is_large(v, u, step):
    def body(i):
        with tf.control_dependencies([tf.assign_add(u, ONES)]):
            return i + 1

    return [tf.while_loop(lambda i: tf.reduce_sum(u * 2.0) < 17.0, body, [0])]


def a_branch_in_a_loop(v, u, step):
    def body(i):
        more, less = (lambda: tf.assign_add(u, v * i)), (lambda: tf.assign_sub(u, ONES / 2.0))
        with tf.control_dependencies([tf.cond(i > 1.0, more, less)]):
            return i + 1.0

    with tf.control_dependencies([tf.while_loop(lambda i: i < 4.0, body, [0.0])]):
        return [u * 2.0]


def a_branch_in_a_branch(v, u, step):
    inner = lambda: tf.cond(step > 2, lambda: tf.assign(u, v * 5.0), lambda: tf.assign_add(u, v))  # noqa: E731
    with tf.control_dependencies([tf.cond(step > 1, inner, lambda: tf.identity(u))]):
        return [u * 2.0]


def a_map(v, u, step):
    def element(x):
        return x * tf.assign_add(u, ONES)[0]

    return [tf.map_fn(element, tf.ones([3]), parallel_iterations=1)]


def a_case(v, u, step):
    first, second = (lambda: tf.assign_add(u, v)), (lambda: tf.assign_sub(u, v / 2.0))
    default = lambda: tf.assign(u, v * 3.0)  # noqa: E731
    with tf.control_dependencies([tf.case([(step < 2, first), (step < 3, second)], default)]):
        return [u * 2.0]


def a_scatter_and_a_gather_in_a_branch(v, u, step):
    def write():
        return tf.gather(tf.scatter_add(u, [1], [5.0]), [0, 1])

    return [tf.cond(step > 1, write, lambda: tf.gather(u, [1, 0]))]


def an_optimizer_in_a_branch(v, u, step):
    loss = tf.reduce_sum(tf.square(v * [1.0, 2.0] - 3.0))
    train = tf.train.MomentumOptimizer(0.01, 0.9)
    taken = tf.cond(step < 3, lambda: train.minimize(loss, var_list=[v]), tf.no_op)
    with tf.control_dependencies([taken]):
        return [v * 2.0]


def a_gradient_of_a_branch_that_reads(v, u, step):
    loss = tf.cond(step > 1, lambda: tf.reduce_sum(v.read_value() ** 2), lambda: tf.reduce_sum(v))
    gradient = tf.gradients(loss, v)[0]
    train = tf.train.GradientDescentOptimizer(0.1).apply_gradients([(gradient, v)])
    with tf.control_dependencies([train]):
        return [gradient + 0.0, v * 2.0]


def an_update_after_a_branch_that_reads(v, u, step):
    read = tf.cond(step > 1, lambda: v.read_value() * 2.0, lambda: v * 3.0)
    with tf.control_dependencies([read]):
        added = tf.assign_add(v, ONES)
    with tf.control_dependencies([added]):
        return [read + 0.0, v * 2.0]


def two_gradients_of_a_loop(v, u, step):
    """The second one's loop takes the new value, with the old one's activations."""
    loop = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.sin(x * v)), [0, ONES])
    loss = tf.reduce_sum(loop[1])
    train = tf.train.GradientDescentOptimizer(0.1)
    with tf.control_dependencies([train.minimize(loss)]):
        again = train.minimize(loss * 0.5)
    with tf.control_dependencies([again]):
        return [v * 2.0]


PROGRAMS = [
    writes_in_one_branch,
    another_write_in_each_branch,
    a_read_after_a_branch_that_writes,
    a_read_within_a_branch_after_its_write,
    a_branch_that_returns_what_it_took,
    a_loop_that_writes,
    a_loop_that_looks_before_it_writes,
    a_loop_until_a_variable_is_large,
    a_branch_in_a_loop,
    a_branch_in_a_branch,
    a_map,
    a_case,
    an_optimizer_in_a_branch,
    a_scatter_and_a_gather_in_a_branch,
    a_gradient_of_a_branch_that_reads,
    an_update_after_a_branch_that_reads,
    two_gradients_of_a_loop,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_numbers_of_a_program(program):
    def build():
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        u = tf.get_variable("u", [2], initializer=tf.zeros_initializer(), trainable=False)
        step = tf.get_variable("step", [], tf.int64, initializer=tf.zeros_initializer())
        count = tf.assign_add(step, 1)
        with tf.control_dependencies([count]):
            now = tf.identity(count)
        with tf.control_dependencies([now]):
            fetched = program(v, u, now)
        return [tf.global_variables_initializer()], [*fetched, now]

    judge, ours = judged.in_sessions(build, steps=4)
    for of_judge, of_ours in zip(judge, ours, strict=True):
        for expected, found in zip(of_judge, of_ours, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert [step[-1] for step in judge] == [1, 2, 3, 4]
    assert any((a != b).any() for a, b in zip(judge[0][:-1], judge[-1][:-1], strict=True))


def test_branches_that_only_read_stay_as_they_are():
    def build():
        v = tf.get_variable("v", [2])
        tf.cond(tf.reduce_sum(v) > 0.0, lambda: v * 2.0, lambda: v.read_value())
        tf.while_loop(lambda i: i < 3.0, lambda i: i + tf.reduce_sum(v), [0.0])

    graph, _ = judged.captured(build)
    names = [set(each._functions) for each in (graph, judged.on_resources(graph).graph)]
    assert names[0] == names[1]


def test_a_function_bound_to_its_caller_is_refused():
    """`tf.data` and others that take a function by name: their writes are not converted."""

    def build():
        v = tf.get_variable("v", [2])
        tf.cond(v[0] > 0.0, lambda: tf.assign_add(v, ONES), lambda: v * 2.0)
        [caller] = [op for op in v.graph.get_operations() if op.type in ("If", "StatelessIf")]
        function = caller.get_attr("then_branch")
        tf.raw_ops.RemoteCall(
            target="/cpu:0", args=list(caller.inputs)[1:], Tout=[tf.float32], f=function.name
        )

    graph, _ = judged.captured(build)
    with pytest.raises(NotImplementedError, match=r"RemoteCall\) calls a function .*\['v'\]"):
        judged.on_resources(graph)
