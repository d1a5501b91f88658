"""Data without tf.data's tuning of buffers, for whose thread an iterator's destructor waits.

The thread sleeps for up to a minute. The package's own loops drop iterators where nobody waits;
Keras' `fit` drops its own wherever that comes to be.
"""

import contextlib
from collections.abc import Iterator
from unittest import mock

import tensorflow as tf
from tensorflow.python.data.ops import multi_device_iterator_ops


def untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """`dataset` without tuning."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


@contextlib.contextmanager
def untuned_replicas() -> Iterator[None]:
    """Within, what a strategy puts between a dataset and its replicas is not tuned either."""
    create = multi_device_iterator_ops._create_device_dataset

    def without_tuning(*arguments):
        return untuned(create(*arguments))

    with mock.patch.object(multi_device_iterator_ops, "_create_device_dataset", without_tuning):
        yield
