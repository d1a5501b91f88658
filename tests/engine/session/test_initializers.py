import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.engine.checkpoint.state import CheckpointSource
from tpu_estimator_compat.engine.session.session_creator import SessionCreator


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint in which "weight" is [7, 7]."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weight", initializer=[7.0, 7.0])
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(tmp_path / "first"))


def _average(weight):
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply([weight])
    return average.average(weight)


def _where_initialized(weight):
    return tf.cond(
        tf.is_variable_initialized(weight), lambda: weight + 0.0, lambda: tf.zeros_like(weight)
    )


KINDS = {
    "average": _average,
    "read": lambda weight: tf.get_variable("copy", initializer=weight.read_value()),
    "sum": lambda weight: tf.Variable(weight + 0.0),
    "copy of a copy": lambda weight: tf.Variable(tf.Variable(weight * 2.0) - weight),
    "cond": lambda weight: tf.Variable(lambda: _where_initialized(weight)),
    "cond in a cond": lambda weight: tf.Variable(
        tf.cond(
            tf.constant(True), lambda: _where_initialized(weight), lambda: tf.zeros_like(weight)
        )
    ),
}


@pytest.mark.parametrize(
    ("kind", "use_resource"),
    [
        *((kind, True) for kind in KINDS),
        # A session asks within a branch whether a ref variable is initialized.
        *((kind, False) for kind in KINDS if kind != "cond in a cond"),
    ],
)
def test_variable_begins_with_the_warm_started_value_of_another(
    kind, use_resource, checkpoint, graph, session
):
    with (
        graph_building.capture_semantics(),
        tf.variable_scope("", use_resource=use_resource),
    ):
        weight = tf.get_variable("weight", [2], initializer=tf.ones_initializer())
        other = KINDS[kind](weight)
        tf.train.init_from_checkpoint(checkpoint, {"weight": "weight"})
        SessionCreator(
            lambda: session, tf.train.Scaffold(), CheckpointSource(None, None)
        ).create_session()
    np.testing.assert_array_equal(session.run(other), [7.0, 7.0])
    np.testing.assert_array_equal(session.run(weight), [7.0, 7.0])


def test_variables_that_begin_with_each_other_are_initialized(graph, session):
    weight = tf.get_variable("weight", initializer=2.0)
    other = tf.Variable(
        tf.cond(tf.is_variable_initialized(weight), lambda: weight * 1, lambda: 5.0)
    )
    reads_other = tf.cond(tf.is_variable_initialized(other), lambda: other + 1, lambda: 3.0)
    weight._initializer_op = tf.assign(weight, reads_other).op
    SessionCreator(
        lambda: session, tf.train.Scaffold(), CheckpointSource(None, None)
    ).create_session()
    assert session.run([weight, other]) == [6.0, 5.0]
