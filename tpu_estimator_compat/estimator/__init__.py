"""`tf.estimator`, as far as it is provided: the same names in the same places."""

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.estimator import experimental, export, tpu
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, VocabInfo, WarmStartSettings

__all__ = [
    "Estimator",
    "EstimatorSpec",
    "ModeKeys",
    "RunConfig",
    "VocabInfo",
    "WarmStartSettings",
    "experimental",
    "export",
    "tpu",
]
