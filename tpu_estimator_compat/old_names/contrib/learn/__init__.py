"""`tf.contrib.learn`: the names that scripts use with an Estimator of `tf.estimator`."""

from tpu_estimator_compat.estimator import NanLossDuringTrainingError
from tpu_estimator_compat.old_names.contrib.learn import datasets, io, learn_runner, monitors
from tpu_estimator_compat.old_names.contrib.learn import text_preprocessing as preprocessing
from tpu_estimator_compat.old_names.contrib.learn.experiment import Experiment
from tpu_estimator_compat.old_names.contrib.learn.export_strategy import (
    ExportStrategy,
    make_export_strategy,
)
from tpu_estimator_compat.old_names.contrib.learn.run_config import ModeKeys, RunConfig, TaskType

__all__ = [
    "Experiment",
    "ExportStrategy",
    "ModeKeys",
    "NanLossDuringTrainingError",
    "RunConfig",
    "TaskType",
    "datasets",
    "io",
    "learn_runner",
    "make_export_strategy",
    "monitors",
    "preprocessing",
]
