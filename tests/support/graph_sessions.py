"""A graph, a session on it, and runs of its programs on replicas."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.functions import eager
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


def run(strategy, program, values=None):
    """What every replica fetches, stacked; with `values`, the program takes a replica's own."""

    @tf.function(autograph=False)
    def step():
        def on_replica():
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            return program([] if values is None else [tf.constant(values)[replica]], None)

        return strategy.run(on_replica)

    with eager.eager_mode():
        fetched = tf.nest.map_structure(strategy.experimental_local_results, step())
    return [np.stack([part.numpy() for part in parts]) for parts in fetched]
