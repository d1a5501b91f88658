"""Outputs: what a signature of an exported graph answers. TensorFlow still has the classes."""

from tpu_estimator_compat.tf_internals import (
    ClassificationOutput,
    EvalOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
    TrainOutput,
)

__all__ = [
    "ClassificationOutput",
    "EvalOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "TrainOutput",
]
