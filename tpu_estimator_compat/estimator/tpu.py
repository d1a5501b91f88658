"""`tf.estimator.tpu` (once `tf.contrib.tpu`): the same names in the same places."""

import tensorflow as tf

from tpu_estimator_compat.config import InputPipelineConfig, TPUConfig
from tpu_estimator_compat.config import TPURunConfig as RunConfig
from tpu_estimator_compat.estimator.tpu_estimator import ExportSavedModelApiVersion, TPUEstimator
from tpu_estimator_compat.spec import TPUEstimatorSpec
from tpu_estimator_compat.topology import TPUStrategy

CrossShardOptimizer = tf.compat.v1.tpu.CrossShardOptimizer

__all__ = [
    "CrossShardOptimizer",
    "ExportSavedModelApiVersion",
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "TPUStrategy",
]
