"""Finds the operations of a graph that Keras's code made."""

from __future__ import annotations

import os

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops

Code = tuple[str, ...]


def _ends(*paths: str) -> Code:
    return tuple(os.sep + path.replace("/", os.sep) for path in paths)


_COMMON = _ends(
    "keras/src/layers/", "keras/src/optimizers/", "keras/src/random/", "tf_keras/src/layers/"
)
READING = (*_COMMON, *_ends("keras/src/backend/common/variables.py", "tf_keras/src/optimizers/"))
"""Files of code that expects its reads of variables in the order of its lines."""
UPDATING = (*_COMMON, *_ends("tf_keras/src/optimizers/optimizer.py"))
"""Files of code that writes to variables, and returns no op for the write."""


def is_by(op: tf.Operation, code: Code) -> bool:
    """Whether code in the files `code` made `op`."""
    return any(
        part in frame.filename for frame in graph_ops.original(op).traceback for part in code
    )
