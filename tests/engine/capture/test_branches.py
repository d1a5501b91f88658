"""Branches and loops are built as in the graph around them: names, reads, threads."""

import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import judged
from support.legacy_models import Fetching

from tpu_estimator_compat.engine.capture import branches, patches
from tpu_estimator_compat.estimator import Estimator
from tpu_estimator_compat.spec import EstimatorSpec
from tpu_estimator_compat.tf_internals import cond_v2


def wait():
    time.sleep(0.05)
    return np.float32(0)


def late(value):
    with tf.control_dependencies([tf.numpy_function(wait, [], tf.float32)]):
        return value.read_value() + 0.0


def by_cond(value):
    return tf.cond(value > -1.0, lambda: late(value), lambda: 0.0)


def by_case(value):
    index = tf.cast(value * 0.0, tf.int32)
    return tf.switch_case(index, [lambda: late(value), lambda: 0.0])


def within_another(value):
    return tf.cond(value > -1.0, lambda: by_cond(value), lambda: 0.0)


@pytest.mark.parametrize("read", [by_cond, by_case, within_another])
def test_an_update_waits_for_a_branch_that_reads(read, tmp_path):
    """As long as nothing else has the update wait: the branch takes its time."""
    hook = Fetching("read:0")

    def model_fn(features, labels, mode):
        value = tf.get_variable("value", [], initializer=tf.zeros_initializer())
        tf.identity(read(value), name="read")
        train_op = tf.group(
            value.assign_add(1.0), tf.assign_add(tf.train.get_or_create_global_step(), 1)
        )
        return EstimatorSpec(mode, loss=tf.constant(0.0), train_op=train_op)

    estimator = Estimator(model_fn, str(tmp_path))
    estimator.train(lambda: tf.data.Dataset.from_tensors(0.0).repeat(), steps=3, hooks=[hook])
    assert hook.seen == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("result", [tf.group, tf.identity])
def test_a_step_has_ended_when_its_branch_has_written(result, tmp_path):
    """A branch may give an operation: the read of the global step waits for what it writes."""

    def write():
        step = tf.train.get_global_step()
        with tf.control_dependencies([tf.numpy_function(wait, [], tf.float32)]):
            return result(step.assign_add(1))

    def model_fn(features, labels, mode):
        nothing = (lambda: tf.constant(0, tf.int64)) if result is tf.identity else tf.no_op
        train_op = tf.cond(features > -1.0, write, nothing)
        return EstimatorSpec(mode, loss=tf.constant(0.0), train_op=train_op)

    class Counts(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            seen.append(run_context.session.global_step())

    seen = []
    estimator = Estimator(model_fn, str(tmp_path))
    estimator.train(lambda: tf.data.Dataset.from_tensors(0.0).repeat(), steps=2, hooks=[Counts()])
    assert seen == [1, 2]


@pytest.mark.parametrize("theirs_first", [True, False])
def test_anothers_replacement_of_a_branch_counts_too(theirs_first):
    called = []

    def noting(cond, *args, **how):
        called.append(args)
        return cond(*args, **how)

    contexts = [
        patches.patched(cond_v2, "cond_v2", noting),
        branches.as_captured(of_one_graph=True),
    ]
    first, second = contexts if theirs_first else reversed(contexts)
    original = cond_v2.cond_v2
    with tf.Graph().as_default(), first, second:
        tf.cond(tf.placeholder(tf.bool, []), lambda: 1.0, lambda: 0.0)
    assert len(called) == 1
    assert cond_v2.cond_v2 is original


def test_a_function_names_each_operation_once():
    """TensorFlow itself makes its branches wait, and refuses a second mention."""
    value = tf.Variable(2.0, use_resource=True)

    @tf.function
    def read():
        return tf.cond(value > 0.0, lambda: value + 0.0, lambda: 0.0)

    with branches.as_captured(of_one_graph=False):
        assert read().numpy() == 2.0


def test_a_graph_made_while_another_is_names_each_read_once():
    """As an evaluation does that a hook starts where the training's functions are called."""
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.get_variable("value", [], initializer=tf.ones_initializer(), use_resource=True)
        with branches.as_captured(of_one_graph=False), branches.as_captured(of_one_graph=False):
            read = tf.cond(value > 0.0, lambda: value.read_value() + 1.0, lambda: 0.0)
        session.run(tf.global_variables_initializer())
        assert session.run(read) == 2.0


def names_and_types():
    """Of variables that a branch made, as checkpoints have them."""

    def make(name):
        with tf.variable_scope("in"):
            made = tf.get_variable(name, [], initializer=tf.ones_initializer())
        return made * tf.Variable(2.0, name="plain")

    v = tf.get_variable("v", [], initializer=tf.ones_initializer())
    with tf.name_scope("outer"):
        tf.cond(v > 0.0, lambda: make("a"), lambda: make("b"))
        tf.while_loop(lambda i: i < 2, lambda i: i + 1, [0])
    tf.case([(v > 2.0, lambda: make("c"))], default=lambda: v + 1.0)
    return [(each.op.name, each.op.type, each.dtype) for each in tf.global_variables()]


def test_variables_of_branches_have_the_outer_graphs_names():
    with judged.old_behavior(), tf.Graph().as_default():
        expected = names_and_types()
    _, found = judged.captured(names_and_types)
    assert found == expected
    assert {kind for _, kind, _ in found} == {"VariableV2"}
    assert [name for name, _, _ in found][:3] == ["v", "in/a", "outer/cond/plain"]


def test_graphs_of_another_thread_are_its_own():
    """A thread of the user's builds TensorFlow 2's graphs meanwhile."""

    def graph():
        with tf.Graph().as_default() as built:
            v = tf.get_variable("v", [], use_resource=True)

            def branch():
                with tf.variable_scope("in"):
                    made = tf.get_variable("a", [], use_resource=True)
                tf.summary.scalar("s", made)
                return made + v

            taken = tf.cond(v > 0.0, branch, lambda: 0.0)
            loop = tf.while_loop(lambda i: i < 2.0, lambda i: i + tf.exp(v), [0.0])
            tf.add(taken, loop)
        definition = built.as_graph_def()  # names of functions have a count, which orders them
        nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
        return sorted((node.name, node.op, list(node.input)) for node in nodes)

    expected, found = graph(), []
    with branches.as_captured(of_one_graph=True):
        thread = threading.Thread(target=lambda: found.append(graph()))
        thread.start()
        thread.join()
    assert found == [expected]
