"""From a legacy input_fn to the elements that replicas are fed."""

from tpu_estimator_compat.inputs.calling import Featureless, call_input_fn, check_is_dataset
from tpu_estimator_compat.inputs.deployment import DeployedInput, context, feed, warn_of_other_size
from tpu_estimator_compat.inputs.disposal import Disposal
from tpu_estimator_compat.inputs.partitioning import log_fallback, partition_dims

__all__ = [
    "DeployedInput",
    "Disposal",
    "Featureless",
    "call_input_fn",
    "check_is_dataset",
    "context",
    "feed",
    "log_fallback",
    "partition_dims",
    "warn_of_other_size",
]
