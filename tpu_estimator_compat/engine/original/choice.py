"""Chooses who makes a call's loop: the original's loops in a session, or this package's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tpu_estimator_compat.engine.inputs import DeployedInput
from tpu_estimator_compat.engine.modes import evaluation, prediction, training
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.original import needs

Prepared = tuple[Any, CapturedMode, DeployedInput]
"""A `Model`, which the call closes, the captured mode and its input."""


def train(prepared: Prepared, request: training.TrainRequest) -> np.generic | None:
    """Trains; returns the last loss, None without steps."""
    model, captured, deployed_input = prepared
    with contextlib.closing(model):
        if needs.session(captured, request.hooks):
            from tpu_estimator_compat.engine.original import loops

            return loops.train(captured, deployed_input, request)
        return training.train(model, captured, deployed_input, request)


def evaluate(prepared: Prepared, request: evaluation.EvalRequest) -> dict[str, Any]:
    """Evaluates; returns metric name to numpy value."""
    model, captured, deployed_input = prepared
    with contextlib.closing(model):
        if needs.session(captured, request.hooks):
            from tpu_estimator_compat.engine.original import loops

            return loops.evaluate(captured, deployed_input, request)
        return evaluation.Evaluation(model, captured, deployed_input, request)()


def predict(prepared: Prepared, request: prediction.PredictRequest) -> Iterator[Any]:
    """Yields predictions until the data ends."""
    model, captured, deployed_input = prepared
    with contextlib.closing(model):
        if needs.session(captured, request.hooks):
            from tpu_estimator_compat.engine.original import loops

            yield from loops.predict(captured, deployed_input, request)
        else:
            yield from prediction.predict(model, captured, deployed_input, request)
