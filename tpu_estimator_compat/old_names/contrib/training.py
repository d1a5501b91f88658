"""`tf.contrib.training`: hyperparameters, waiting for checkpoints, and the loops of tf_slim."""

from __future__ import annotations

from tensorflow.python.training.checkpoint_utils import (
    checkpoints_iterator,
    wait_for_new_checkpoint,
)

from tpu_estimator_compat.old_names.contrib import slim
from tpu_estimator_compat.old_names.contrib.hparams import HParams, parse_values

add_gradients_summaries = slim.training.add_gradients_summaries
clip_gradient_norms = slim.training.clip_gradient_norms
clip_gradient_norms_fn = slim.training.clip_gradient_norms_fn
create_train_op = slim.training.create_train_op
multiply_gradients = slim.training.multiply_gradients
train = slim.training.train

SummaryAtEndHook = slim.train_eval.SummaryAtEndHook
StopAfterNEvalsHook = slim.train_eval.StopAfterNEvalsHook
evaluate_once = slim.train_eval.evaluate_once
evaluate_repeatedly = slim.train_eval.evaluate_repeatedly
get_or_create_eval_step = slim.train_eval.get_or_create_eval_step

__all__ = [
    "HParams",
    "StopAfterNEvalsHook",
    "SummaryAtEndHook",
    "add_gradients_summaries",
    "checkpoints_iterator",
    "clip_gradient_norms",
    "clip_gradient_norms_fn",
    "create_train_op",
    "evaluate_once",
    "evaluate_repeatedly",
    "get_or_create_eval_step",
    "multiply_gradients",
    "parse_values",
    "train",
    "wait_for_new_checkpoint",
]
