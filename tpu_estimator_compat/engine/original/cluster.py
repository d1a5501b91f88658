"""A task of a cluster with parameter servers, as the original's `train_and_evaluate` ran it."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.original import package
from tpu_estimator_compat.engine.runtime import blocking_call

_training: Any = importlib.import_module(f"{package.__name__}.training")


class _Task(_training._TrainingExecutor):
    """The original's executor of an estimator and a TrainSpec, both checked already."""

    def __init__(self, estimator: Any, train_spec: Any):
        if estimator.config.train_distribute is not None:  # TF1's parameter servers: see config
            estimator = copy.copy(estimator)
            estimator._config = estimator.config.replace(train_distribute=None)
        self._estimator, self._train_spec, self._train_hooks = estimator, train_spec, ()

    def _start_std_server(self, config: RunConfig) -> Any:
        try:
            return super()._start_std_server(config)
        except tf.errors.UnknownError as error:
            error.add_note(
                f"{config.task_type} {config.task_id} of TF_CONFIG listens at the port of "
                f"{config.master}. See that no other process uses it, such as a task not ended."
            )
            raise


def train(estimator: Any, train_spec: Any, saving_listeners: Sequence[Any]) -> None:
    """Starts this task's server and trains; workers begin some seconds after the chief."""
    _Task(estimator, train_spec)._start_distributed_training(saving_listeners)


def serve(estimator: Any) -> None:
    """Serves the variables of a parameter server, until a signal ends the process."""
    with blocking_call.ended_by_signals():
        _Task(estimator, None).run_ps()
