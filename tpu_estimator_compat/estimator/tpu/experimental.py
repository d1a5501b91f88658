"""The public names of `tf.estimator.tpu.experimental`."""

from tpu_estimator_compat.embedding import EmbeddingConfigSpec

__all__ = ["EmbeddingConfigSpec"]
