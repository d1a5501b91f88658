"""Splits the results of input_fn into features, labels and hooks, for code that calls it directly.

The original had these names in its module `util`. They serve scripts with graphs and sessions of
their own; the estimators of this package do not use them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tf_internals import fn_args

Hook = Any  # a tf.compat.v1.train.SessionRunHook

MAX_DIRECTORY_CREATION_ATTEMPTS = 10


def parse_input_fn_result(result: Any) -> tuple[Any, Any, list[Hook]]:
    """Features, labels (or None), and the hooks that initialize a Dataset's iterator.

    Args:
      result: a Dataset, made in the default graph, of features or of (features, labels); or the
        features or the pair themselves, as tensors.

    Raises:
      ValueError: a list or tuple of another length than 2.
    """
    hooks: list[Hook] = []
    if isinstance(result, tf.data.Dataset):
        iterator = tf.compat.v1.data.make_initializable_iterator(result)
        hooks.append(_DatasetInitializerHook(iterator))
        result = iterator.get_next()
    return *parse_iterator_result(result), hooks


def parse_iterator_result(result: Any) -> tuple[Any, Any]:
    """Features and labels (or None) of an element; ValueError for a list that is no pair."""
    if not isinstance(result, (list, tuple)):
        return result, None
    if len(result) != 2:
        raise ValueError(
            "input_fn should return (features, labels) as a len 2 tuple. "
            f"Got {len(result)} elements."
        )
    return result[0], result[1]


class _DatasetInitializerHook(tf.compat.v1.train.SessionRunHook):
    def __init__(self, iterator: Any):
        self._iterator = iterator

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: tf.compat.v1.Session, coord: Any) -> None:
        del coord
        session.run(self._initializer)


class DistributedIteratorInitializerHook(_DatasetInitializerHook):
    """Initializes an iterator of a distribution strategy in every new session."""

    def begin(self) -> None:
        self._initializer = self._iterator.initialize()


class MultiHostDatasetInitializerHook(tf.compat.v1.train.SessionRunHook):
    """Runs the initializers of several iterators in every new session, and logs the seconds."""

    def __init__(self, dataset_initializers: Sequence[tf.Operation]):
        self._initializers = dataset_initializers

    def after_create_session(self, session: tf.compat.v1.Session, coord: Any) -> None:
        del coord
        started = time.time()
        session.run(self._initializers)
        tf.compat.v1.logging.info(
            "Initialized dataset iterators in %d seconds", time.time() - started
        )


__all__ = [
    "MAX_DIRECTORY_CREATION_ATTEMPTS",
    "DistributedIteratorInitializerHook",
    "MultiHostDatasetInitializerHook",
    "fn_args",
    "parse_input_fn_result",
    "parse_iterator_result",
]
