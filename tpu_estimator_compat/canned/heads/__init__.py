"""Heads: what makes predictions, loss, metrics and a training step of a model's logits.

The names here are those of TensorFlow 2. `v1` has the heads of TensorFlow 1's canned models, and
the functions of `tf.contrib.estimator` that made them.
"""

from tpu_estimator_compat.canned.heads.base import Head
from tpu_estimator_compat.canned.heads.binary import BinaryClassHead
from tpu_estimator_compat.canned.heads.multi_class import MultiClassHead
from tpu_estimator_compat.canned.heads.multi_head import MultiHead
from tpu_estimator_compat.canned.heads.multi_label import MultiLabelHead
from tpu_estimator_compat.canned.heads.regression import (
    LogisticRegressionHead,
    PoissonRegressionHead,
    RegressionHead,
)

__all__ = [
    "BinaryClassHead",
    "Head",
    "LogisticRegressionHead",
    "MultiClassHead",
    "MultiHead",
    "MultiLabelHead",
    "PoissonRegressionHead",
    "RegressionHead",
]
