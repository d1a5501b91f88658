"""The public names of `tf.estimator` that this package provides, in the same places.

Users import from here. An estimator checks its arguments, takes what is specific to its kind from
its rules (`engine/modes/rules.py`), and makes a `ModelFnModel` for each call; the engine does the
rest. `train_and_evaluate`, exporters and estimators made of Keras 2 models are mostly the
original's own code (`original.py`). Begin with `estimator.py`, then `engine/modes/preparation.py`.
"""

import importlib
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.estimator import inputs, tpu
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, VocabInfo, WarmStartSettings

if TYPE_CHECKING:
    from tpu_estimator_compat.estimator import experimental, export
    from tpu_estimator_compat.estimator.exporters import (
        BestExporter,
        Exporter,
        FinalExporter,
        LatestExporter,
    )
    from tpu_estimator_compat.estimator.extending import add_metrics
    from tpu_estimator_compat.estimator.schedule import EvalSpec, TrainSpec, train_and_evaluate

_OF_ORIGINAL = {
    "BestExporter": "exporters",
    "EvalSpec": "schedule",
    "Exporter": "exporters",
    "FinalExporter": "exporters",
    "LatestExporter": "exporters",
    "TrainSpec": "schedule",
    "add_metrics": "extending",
    "train_and_evaluate": "schedule",
}
"""Names to the modules that have them; these load tensorflow-estimator (see `original.py`)."""

# TensorFlow's own hooks: `tf.estimator` had a second name for each.
CheckpointSaverHook = tf.compat.v1.train.CheckpointSaverHook
CheckpointSaverListener = tf.compat.v1.train.CheckpointSaverListener
FeedFnHook = tf.compat.v1.train.FeedFnHook
FinalOpsHook = tf.compat.v1.train.FinalOpsHook
GlobalStepWaiterHook = tf.compat.v1.train.GlobalStepWaiterHook
LoggingTensorHook = tf.compat.v1.train.LoggingTensorHook
NanLossDuringTrainingError = tf.compat.v1.train.NanLossDuringTrainingError
NanTensorHook = tf.compat.v1.train.NanTensorHook
ProfilerHook = tf.compat.v1.train.ProfilerHook
SecondOrStepTimer = tf.compat.v1.train.SecondOrStepTimer
SessionRunArgs = tf.compat.v1.train.SessionRunArgs
SessionRunContext = tf.compat.v1.train.SessionRunContext
SessionRunHook = tf.compat.v1.train.SessionRunHook
SessionRunValues = tf.compat.v1.train.SessionRunValues
StepCounterHook = tf.compat.v1.train.StepCounterHook
StopAtStepHook = tf.compat.v1.train.StopAtStepHook
SummarySaverHook = tf.compat.v1.train.SummarySaverHook

__all__ = [
    "BestExporter",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "Estimator",
    "EstimatorSpec",
    "EvalSpec",
    "Exporter",
    "FeedFnHook",
    "FinalExporter",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "LatestExporter",
    "LoggingTensorHook",
    "ModeKeys",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "ProfilerHook",
    "RunConfig",
    "SecondOrStepTimer",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "TrainSpec",
    "VocabInfo",
    "WarmStartSettings",
    "add_metrics",
    "experimental",
    "export",
    "inputs",
    "tpu",
    "train_and_evaluate",
]


def __getattr__(name: str) -> Any:
    """Imports on first use what loads tensorflow-estimator."""
    if name in ("experimental", "export"):
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _OF_ORIGINAL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_OF_ORIGINAL[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
