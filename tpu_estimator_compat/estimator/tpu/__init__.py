"""The public names of `tf.estimator.tpu` (once `tf.contrib.tpu`), in the same places."""

import tensorflow as tf

from tpu_estimator_compat.config import InputPipelineConfig, TPUConfig
from tpu_estimator_compat.config import TPURunConfig as RunConfig
from tpu_estimator_compat.engine.export.tpu_graph import (
    BatchConfig,
    inference_on_tpu,
    model_fn_inference_on_tpu,
)
from tpu_estimator_compat.engine.topology.tpu_strategy import TPUStrategy
from tpu_estimator_compat.estimator.tpu_estimator import (
    ExportSavedModelApiVersion,
    TPUEstimator,
    export_estimator_savedmodel,
)
from tpu_estimator_compat.spec import TPUEstimatorSpec

CrossShardOptimizer = tf.compat.v1.tpu.CrossShardOptimizer

__all__ = [
    "BatchConfig",
    "CrossShardOptimizer",
    "ExportSavedModelApiVersion",
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "TPUStrategy",
    "export_estimator_savedmodel",
    "inference_on_tpu",
    "model_fn_inference_on_tpu",
]
