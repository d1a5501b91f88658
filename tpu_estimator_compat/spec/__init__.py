"""The results of a `model_fn`: validated tensors, ops and functions for one mode; warm starts.

Users return an `EstimatorSpec` or a `TPUEstimatorSpec`; `mode_spec.py` brings both into the one
form that the engine takes. The hooks that specs add, such as `HostCallHook`, are here too.
Begin with `tpu_estimator_spec.py`.
"""

from tpu_estimator_compat.spec.estimator_spec import EstimatorSpec
from tpu_estimator_compat.spec.hooks import HostCallHook, SummaryWritersHook
from tpu_estimator_compat.spec.keras_metrics import is_keras_metric, keras_metric_pair
from tpu_estimator_compat.spec.tpu_estimator_spec import TPUEstimatorSpec
from tpu_estimator_compat.spec.validation import ModeKeys
from tpu_estimator_compat.spec.warm_start import (
    VocabInfo,
    WarmStartSettings,
    check_checkpoint_exists,
    default_warm_start_settings,
)

__all__ = [
    "EstimatorSpec",
    "HostCallHook",
    "ModeKeys",
    "SummaryWritersHook",
    "TPUEstimatorSpec",
    "VocabInfo",
    "WarmStartSettings",
    "check_checkpoint_exists",
    "default_warm_start_settings",
    "is_keras_metric",
    "keras_metric_pair",
]
