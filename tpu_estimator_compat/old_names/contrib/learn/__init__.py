"""`tf.contrib.learn`: its Estimator, on that of `tf.estimator`, and what goes with it."""

from tpu_estimator_compat.estimator import NanLossDuringTrainingError
from tpu_estimator_compat.old_names.contrib.learn import datasets, io, learn_runner, monitors
from tpu_estimator_compat.old_names.contrib.learn import text_preprocessing as preprocessing
from tpu_estimator_compat.old_names.contrib.learn.arrays import (
    extract_pandas_data,
    extract_pandas_labels,
    extract_pandas_matrix,
)
from tpu_estimator_compat.old_names.contrib.learn.estimator import (
    BaseEstimator,
    Estimator,
    Evaluable,
    NotFittedError,
    SKCompat,
    Trainable,
)
from tpu_estimator_compat.old_names.contrib.learn.experiment import Experiment
from tpu_estimator_compat.old_names.contrib.learn.export_strategy import (
    ExportStrategy,
    make_export_strategy,
)
from tpu_estimator_compat.old_names.contrib.learn.keys import (
    MetricKey,
    ModeKeys,
    PredictionKey,
    ProblemType,
)
from tpu_estimator_compat.old_names.contrib.learn.metric_spec import MetricSpec
from tpu_estimator_compat.old_names.contrib.learn.model_fn_ops import ModelFnOps
from tpu_estimator_compat.old_names.contrib.learn.run_config import RunConfig, TaskType
from tpu_estimator_compat.old_names.contrib.learn.serving import (
    InputFnOps,
    build_parsing_serving_input_fn,
)

__all__ = [
    "BaseEstimator",
    "Estimator",
    "Evaluable",
    "Experiment",
    "ExportStrategy",
    "InputFnOps",
    "MetricKey",
    "MetricSpec",
    "ModeKeys",
    "ModelFnOps",
    "NanLossDuringTrainingError",
    "NotFittedError",
    "PredictionKey",
    "ProblemType",
    "RunConfig",
    "SKCompat",
    "TaskType",
    "Trainable",
    "build_parsing_serving_input_fn",
    "datasets",
    "extract_pandas_data",
    "extract_pandas_labels",
    "extract_pandas_matrix",
    "io",
    "learn_runner",
    "make_export_strategy",
    "monitors",
    "preprocessing",
]
