"""Data for Keras' loops, batched and without tuning."""

import tensorflow as tf
from support.legacy_models import examples
from support.untuned import untuned


def dataset(repeats=1, batch=16):
    pairs = tf.data.Dataset.from_tensor_slices(examples())
    return untuned(pairs.repeat(repeats).batch(batch, drop_remainder=True))
