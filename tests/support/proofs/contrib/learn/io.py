"""Proofs of `tf.contrib.learn.io`."""

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import graph, proves

X = np.array([1.0, 2.0], np.float32)


@proves("tf.contrib.learn.io")
def reads(module):
    with graph(), tf.Session() as session:
        batch = module.numpy_input_fn({"x": X}, batch_size=2)()
        session.run(tf.tables_initializer())
        assert sorted(session.run(batch)["x"]) == [1.0, 2.0]
