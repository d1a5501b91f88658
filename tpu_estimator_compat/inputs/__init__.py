"""From a legacy input_fn to the elements that replicas are fed."""

from tpu_estimator_compat.inputs.calling import call_input_fn
from tpu_estimator_compat.inputs.deployment import Feed, context, feed

__all__ = ["Feed", "call_input_fn", "context", "feed"]
