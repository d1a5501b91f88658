"""Runs legacy TPUEstimator code, unchanged, on today's TensorFlow and Keras 3.

The theory in one sentence: a model_fn is captured once per mode as an ordinary TF1 graph; the
graph, pruned to what is fetched, is a replica program; a keras.Model runs that program on every
replica under `tf.distribute`.

`import tpu_estimator_compat as tpu` stands for `tf.estimator.tpu` (once `tf.contrib.tpu`), and
`tpu_estimator_compat.estimator` for `tf.estimator`. Importing this package changes nothing in
TensorFlow.
"""

from tpu_estimator_compat import estimator, tpu
from tpu_estimator_compat.estimator import ModeKeys, WarmStartSettings
from tpu_estimator_compat.tpu import (
    BatchConfig,
    CrossShardOptimizer,
    ExportSavedModelApiVersion,
    InputPipelineConfig,
    RunConfig,
    TPUConfig,
    TPUEstimator,
    TPUEstimatorSpec,
    TPUStrategy,
    export_estimator_savedmodel,
    inference_on_tpu,
    model_fn_inference_on_tpu,
)

__version__ = "0.1.0"

__all__ = [
    "BatchConfig",
    "CrossShardOptimizer",
    "ExportSavedModelApiVersion",
    "InputPipelineConfig",
    "ModeKeys",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "TPUStrategy",
    "WarmStartSettings",
    "estimator",
    "export_estimator_savedmodel",
    "inference_on_tpu",
    "model_fn_inference_on_tpu",
    "tpu",
]
