"""`tf.estimator.tpu.experimental`: the same names in the same places."""

from tpu_estimator_compat.embedding import EmbeddingConfigSpec

__all__ = ["EmbeddingConfigSpec"]
