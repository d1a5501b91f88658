"""Chooses who makes a call's loop: the original's loops in a session, or this package's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tpu_estimator_compat.engine.capture import branch_refs
from tpu_estimator_compat.engine.inputs import DeployedInput
from tpu_estimator_compat.engine.modes import evaluation, prediction, training
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.original import needs

Prepared = tuple[Any, CapturedMode, DeployedInput]
"""A `Model`, which the call closes, the captured mode and its input."""


def train(prepared: Prepared, request: training.TrainRequest) -> np.generic | None:
    """Trains; returns the last loss, None without steps."""
    with contextlib.closing(prepared[0]):
        loss: np.generic | None = _loops(prepared, request, training).train(*prepared, request)
        return loss


def evaluate(prepared: Prepared, request: evaluation.EvalRequest) -> dict[str, Any]:
    """Evaluates; returns metric name to numpy value."""
    with contextlib.closing(prepared[0]):
        results: dict[str, Any] = _loops(prepared, request, evaluation).evaluate(*prepared, request)
        return results


def predict(prepared: Prepared, request: prediction.PredictRequest) -> Iterator[Any]:
    """Yields predictions until the data ends."""
    with contextlib.closing(prepared[0]):
        yield from _loops(prepared, request, prediction).predict(*prepared, request)


def _loops(prepared: Prepared, request: Any, of_steps: Any) -> Any:
    """The module of a call's loop."""
    listeners = getattr(request, "saving_listeners", ())
    if not needs.session(prepared[1], [*request.hooks, *listeners]):
        return of_steps
    branch_refs.let_reads_fail_within(prepared[1].graph)
    from tpu_estimator_compat.engine.original import loops

    return loops
