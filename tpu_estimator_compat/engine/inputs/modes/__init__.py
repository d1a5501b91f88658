"""The values of InputPipelineConfig, one file each: calls of input_fn, and the replicas' shares."""

from tpu_estimator_compat.engine.inputs.modes.base import InputMode, Invocation, TPUInputMode
from tpu_estimator_compat.engine.inputs.modes.chosen_mode import check_config, resolve
from tpu_estimator_compat.engine.inputs.modes.plain import Plain

__all__ = ["InputMode", "Invocation", "Plain", "TPUInputMode", "check_config", "resolve"]
