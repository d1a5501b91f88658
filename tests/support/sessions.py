"""Sessions that run a graph as it is.

Before the first run, TensorFlow rewrites a graph to run faster. For small graphs that run once this
takes longer than the run.
"""

import tensorflow.compat.v1 as tf


def session(graph: tf.Graph | None = None) -> tf.Session:
    """A session that rewrites nothing."""
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return tf.Session(graph=graph, config=config)
