"""Functions from features to logits: what calls them, in a model_fn that joins several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.canned.dnn import dnn_logit_fn_builder
from tpu_estimator_compat.canned.linear import linear_logit_fn_builder
from tpu_estimator_compat.model_fn.calling import declared_arguments


def call_logit_fn(
    logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any
) -> Any:
    """Calls a logit_fn with those of the arguments that it declares.

    Args:
      logit_fn: function of `features`, and of `mode`, `params`, `config` where it declares them.
      features: tensors by name.
      mode: a `ModeKeys` value.
      params: hyperparameters.
      config: a `RunConfig`.

    Returns:
      A tensor of logits, or a dict of them.

    Raises:
      ValueError: it returned something else.
    """
    offered = {"mode": mode, "params": params, "config": config}
    logits = logit_fn(features=features, **declared_arguments(logit_fn, offered))
    if not _are_logits(logits):
        raise ValueError(
            "logit_fn should return a Tensor or a dictionary mapping strings to Tensors.  "
            f"logit_fn returned: {logits}"
        )
    return logits


def _are_logits(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and isinstance(v, tf.Tensor) for k, v in value.items())
    return isinstance(value, tf.Tensor)


__all__ = ["call_logit_fn", "dnn_logit_fn_builder", "linear_logit_fn_builder"]
