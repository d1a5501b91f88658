"""A task of a cluster with parameter servers, as the original's `train_and_evaluate` ran it."""

from __future__ import annotations

import contextlib
import copy
import signal
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config import RunConfig, TaskType
from tpu_estimator_compat.engine.packages import tensorflow_estimator

_training: Any = tensorflow_estimator.module("training")


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


def run(estimator: Any, train_spec: Any, saving_listeners: Sequence[Any]) -> None:
    """Serves variables, or starts this task's server and trains; workers begin later."""
    if estimator.config.task_type == TaskType.PS:
        serve(estimator)
    else:
        _Task(estimator, train_spec)._start_distributed_training(saving_listeners)


def serve(estimator: Any) -> None:
    """Serves variables until a signal ends the process: handlers in Python could not run."""
    with contextlib.suppress(ValueError):  # in another thread than the main one
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _Task(estimator, None).run_ps()


def start_server(estimator: Any) -> Any:
    """Starts this task's server, and returns it; None for the only task of a cluster."""
    return _Task(estimator, None)._start_std_server(estimator.config)
