"""Calls a spec's host functions on placeholders that stand for all replicas' tensors."""

from __future__ import annotations

from typing import Any

from tpu_estimator_compat.program.capture import CapturedGraph


def call_on_host(captured: CapturedGraph, replicas: int, host_call: tuple) -> Any:
    """What `function` returns for `tensors` concatenated over replicas along dimension 0.

    Call it with the captured graph as default graph.

    Args:
      captured: the captured graph.
      replicas: how many replicas there are.
      host_call: `(function, tensors)`; a list is passed by position, a dict by name.

    Returns:
      The function's result, made of tensors and operations of the captured graph.

    Raises:
      RuntimeError: one of the tensors is a scalar.
    """
    function, tensors = host_call
    if isinstance(tensors, dict):
        return function(**{k: captured.stand_in(t, replicas) for k, t in tensors.items()})
    return function(*(captured.stand_in(t, replicas) for t in tensors))
