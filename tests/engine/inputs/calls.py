"""Calls of an input_fn by itself, without a model_fn."""

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.capture.capture import new_graph
from tpu_estimator_compat.engine.inputs.calling import call_input_fn
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.state.variables import VariableStore


def called(call, seed=None):
    with new_graph(seed) as graph:
        found = call_input_fn(call, VariableStore(tf.distribute.get_strategy()))
        session = GraphSession(graph, found.store)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(tf.tables_initializer())
    return found


def elements(call, count=100, seed=None):
    return list(called(call, seed).dataset().take(count).as_numpy_iterator())
