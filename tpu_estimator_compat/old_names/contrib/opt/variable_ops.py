"""Ops that update variables of either kind: refs (VariableV2) or resources."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def training_op(name: str, variables: dict[str, Any], **arguments: Any) -> tf.Operation:
    """Applies a gradient with an op such as `ApplyAdam`, or `ResourceApplyAdam` for resources.

    `name` is that of the op for refs; `variables`, by argument name, are all refs or all resources.
    """
    if variables["var"].dtype._is_ref_dtype:
        return getattr(tf.raw_ops, name)(**variables, **arguments).op
    handles = {argument: variable.handle for argument, variable in variables.items()}
    return getattr(tf.raw_ops, f"Resource{name}")(**handles, **arguments)
