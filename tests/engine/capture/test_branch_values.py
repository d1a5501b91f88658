"""Tensors and operations of branches are used outside of them."""

import pytest
import tensorflow.compat.v1 as tf
from support import judged

from tpu_estimator_compat.engine.capture import branch_values


def _program(use, *, nested=False):
    """A program whose branch is taken from the second step on, and what `use` makes of it."""

    def build():
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        count = tf.assign_add(v, 1.0)
        with tf.control_dependencies([count]):
            now = tf.identity(count) * 2.0
        kept = []

        def branch():
            kept.append(tf.multiply(now, 3.0, name="inside"))
            return now * 10.0

        def outer():
            return tf.cond(now > 0.0, branch, lambda: now) if nested else branch()

        taken = tf.cond(now > 2.0, outer, lambda: now * 100.0)
        return [v.initializer], [taken, *use(kept[0])]

    return build


def _run(build, taken):
    """Both sides' values in the first step, in which the branch isn't taken, or in the second."""
    found = []
    with judged.old_behavior(), tf.Graph().as_default() as graph:
        of_judge = (graph, graph, *build())
    graph, (starts, tensors) = judged.captured(build)
    converted = judged.on_resources(graph)
    ours = [converted.operation(start) for start in starts], [converted.tensor(t) for t in tensors]
    for graph, _, starts, tensors in [of_judge, (converted.graph, None, *ours)]:
        with tf.Session(graph=graph) as session:
            session.run(starts)
            if taken:
                session.run(tensors[0])
            try:
                found.append(session.run(tensors))
            except tf.errors.InvalidArgumentError as error:
                found.append("does not have value" in str(error))
    return found


@pytest.mark.parametrize("nested", [False, True])
def test_a_tensor_has_its_value_if_the_branch_is_taken(nested):
    judge, ours = _run(_program(lambda kept: [kept + 1.0], nested=nested), taken=True)
    assert judge == ours == [40.0, 13.0]


@pytest.mark.parametrize("nested", [False, True])
def test_a_tensor_has_none_if_the_branch_is_not_taken(nested):
    """A session's words for it."""
    judge, ours = _run(_program(lambda kept: [kept + 1.0], nested=nested), taken=False)
    assert judge is True
    assert ours is True


def test_a_tensor_that_is_used_twice():
    judge, ours = _run(_program(lambda kept: [kept + 1.0, kept * 2.0]), taken=True)
    assert judge == ours == [40.0, 13.0, 24.0]


def test_control_dependencies_run_if_their_branch_is_taken():
    def build():
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        u = tf.get_variable("u", [], initializer=tf.zeros_initializer())
        count, kept = tf.assign_add(v, 1.0), []
        with tf.control_dependencies([count]):
            now = tf.identity(count) * 2.0

        def branch():
            kept.append(tf.assign_add(u, 5.0).op)
            return now * 10.0

        taken = tf.cond(now > 2.0, branch, lambda: now * 100.0)
        return [v.initializer, u.initializer], taken, kept[0], u

    graph, (starts, taken, kept, u) = judged.captured(build)
    with graph.as_default(), graph.control_dependencies([kept]):
        done = tf.no_op()
    with tf.Session(graph=graph) as session:
        session.run(starts)
        seen = []
        for _ in range(3):
            session.run([done, taken])
            seen.append(session.run(u))
    assert seen == [0.0, 5.0, 10.0]


def test_tensors_of_loops_are_refused_in_tensorflows_words():
    def build():
        kept = []

        def body(i):
            kept.append(tf.multiply(i, 3, name="inside"))
            return i + 1

        tf.while_loop(lambda i: i < 2, body, [0])
        tf.add(kept[0], 1, name="outside")

    said = []
    for capture in (_of_judge, judged.captured):
        with pytest.raises(ValueError, match="is in a while loop") as raised:
            capture(build)
        said.append(str(raised.value).splitlines()[0])
    assert said[0].replace("while/", "") == said[1].replace("while/", "")


def _of_judge(build):
    with judged.old_behavior(), tf.Graph().as_default():
        build()


def test_elements_of_graphs_without_branches_are_as_they_are():
    with tf.Graph().as_default() as graph:
        one = tf.constant(1.0)
        assert branch_values.outside(graph, one) is one
        assert branch_values.awaited(graph, one.op) is one.op
        assert not branch_values.is_inside(one)
        assert not branch_values.is_inside(tf.convert_to_tensor([1.0]).op)
