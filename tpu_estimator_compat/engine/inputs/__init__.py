"""The input: calls a legacy input_fn, and deals its elements to hosts and replicas."""

from tpu_estimator_compat.engine.inputs.async_release import AsyncRelease
from tpu_estimator_compat.engine.inputs.calling import (
    CalledInput,
    call_input_fn,
    check_apart,
    warn_if_endless,
)
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput, context, deploy
from tpu_estimator_compat.engine.inputs.partitioning import log_fallback, partition_dims

__all__ = [
    "AsyncRelease",
    "CalledInput",
    "DeployedInput",
    "call_input_fn",
    "check_apart",
    "context",
    "deploy",
    "log_fallback",
    "partition_dims",
    "warn_if_endless",
]
