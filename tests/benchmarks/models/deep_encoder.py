"""Model: the encoder with twelve layers, whose start takes longer than many of its steps."""

from typing import Any

import tensorflow as tf

from benchmarks.models import encoder

NAME, OPTIMIZER, BATCH = "deep_encoder", encoder.OPTIMIZER, encoder.BATCH
LAYERS = 12

examples = encoder.examples


def logits(get: Any, features: Any) -> tf.Tensor:
    return encoder.logits(get, features, LAYERS)
