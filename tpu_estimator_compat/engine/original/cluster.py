"""A task of a cluster with parameter servers, as the original's `train_and_evaluate` ran it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from tpu_estimator_compat.engine.original import package

_training: Any = importlib.import_module(f"{package.__name__}.training")


class _Task(_training._TrainingExecutor):
    """The original's executor of an estimator and a TrainSpec, both checked already."""

    def __init__(self, estimator: Any, train_spec: Any):
        self._estimator, self._train_spec, self._train_hooks = estimator, train_spec, ()


def train(estimator: Any, train_spec: Any, saving_listeners: Sequence[Any]) -> None:
    """Starts this task's server and trains; workers begin some seconds after the chief."""
    _Task(estimator, train_spec)._start_distributed_training(saving_listeners)


def serve(estimator: Any) -> None:
    """Serves the variables of a parameter server, and never returns."""
    _Task(estimator, None).run_ps()
