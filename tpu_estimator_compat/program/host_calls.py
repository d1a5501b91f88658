"""Calls a spec's host functions on placeholders that stand for all replicas' tensors."""

from __future__ import annotations

from typing import Any

from tpu_estimator_compat.program.capture import CapturedGraph
from tpu_estimator_compat.spec.tpu_estimator_spec import call_on_host, check_host_call


def call_over_replicas(
    captured: CapturedGraph, replicas: int, name: str, host_call: tuple[Any, Any]
) -> Any:
    """What `function` returns for `tensors` concatenated over replicas along dimension 0.

    Call it with the captured graph as default graph.

    Args:
      captured: the captured graph.
      replicas: how many replicas there are.
      name: the field of the spec, for messages: `eval_metrics` or `host_call`.
      host_call: `(function, tensors)`; a list is passed by position, a dict by name.

    Returns:
      The function's result, made of tensors and operations of the captured graph.

    Raises:
      RuntimeError: one of the tensors is a scalar.
      TypeError: one of them is no tensor.
      What `check_host_call` raises.
    """
    check_host_call(name, host_call)  # a spec's _replace does not
    function, tensors = host_call
    for tensor in tensors.values() if isinstance(tensors, dict) else tensors:
        if not hasattr(tensor, "shape"):
            raise TypeError(f"{name}[1] must hold tensors, given: {tensor!r}. Convert it to one.")
    host_placeholders: Any
    if isinstance(tensors, dict):
        host_placeholders = {k: captured.host_placeholder(t, replicas) for k, t in tensors.items()}
    else:
        host_placeholders = [captured.host_placeholder(t, replicas) for t in tensors]
    return call_on_host(name, (function, host_placeholders))
