"""A graph, and a session on it."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.state.variables import VariableStore


@pytest.fixture
def graph():
    graph = tf.Graph()
    with graph.as_default():
        yield graph


@pytest.fixture
def session(graph):
    return GraphSession(graph, VariableStore(tf.distribute.get_strategy()))
