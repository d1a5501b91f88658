"""Configuration of a run: validated values that say how to train, with no behaviour of their own.

`RunConfig` is the plain `tf.estimator.RunConfig`; `TPURunConfig` is `tf.estimator.tpu.RunConfig`,
and holds a `TPUConfig`. A constructor checks its arguments; the error about two that contradict
each other names both. Other folders read configurations; none changes them. Begin with
`run_config.py`, and for TPUs with `tpu_config.py`.
"""

from tpu_estimator_compat.config.run_config import RunConfig
from tpu_estimator_compat.config.run_config_checks import ParameterServerStrategy
from tpu_estimator_compat.config.session_config import default_session_config, warn_of_idle_fields
from tpu_estimator_compat.config.task import TaskType
from tpu_estimator_compat.config.tpu_config import (
    InputPipelineConfig,
    IterationsPerLoopCounter,
    TPUConfig,
    check_positive_integer,
    parse_iterations_per_loop,
)
from tpu_estimator_compat.config.tpu_run_config import RunConfig as TPURunConfig

__all__ = [
    "InputPipelineConfig",
    "IterationsPerLoopCounter",
    "ParameterServerStrategy",
    "RunConfig",
    "TPUConfig",
    "TPURunConfig",
    "TaskType",
    "check_positive_integer",
    "default_session_config",
    "parse_iterations_per_loop",
    "warn_of_idle_fields",
]
