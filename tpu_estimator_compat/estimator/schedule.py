"""`train_and_evaluate`: trains and evaluates in turn, or does this cluster task's part.

The original's executor and specs, with this package's checks and runtimes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import TaskType
from tpu_estimator_compat.config.arguments import (
    all_of,
    as_list,
    check_input_fn,
    check_number,
    check_steps,
)
from tpu_estimator_compat.engine.cluster import joining as cluster
from tpu_estimator_compat.engine.hooks import HOOK_TYPES, preemption
from tpu_estimator_compat.engine.topology.chosen_topology import takes_session
from tpu_estimator_compat.estimator import original
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.keras_model import calls

Results = dict[str, Any]
_training: Any = original.module("training")


def _check_spec(given: dict[str, Any]) -> None:
    for name in ("max_steps", "steps"):
        check_steps(given.get(name), name)
    for name in ("start_delay_secs", "throttle_secs"):
        if name in given:
            check_number(given[name], name, least=0)


def _checked_hooks(hooks: Iterable[Any] | None) -> tuple[Any, ...]:
    hooks = as_list(hooks, "hooks", "SessionRunHook")
    return tuple(all_of(HOOK_TYPES, hooks, "All hooks must be `SessionRunHook` instances"))


def _checked_listeners(listeners: Iterable[Any] | None) -> tuple[Any, ...]:
    listeners = as_list(listeners, "saving_listeners", "CheckpointSaverListener")
    rule = "All saving_listeners must be `CheckpointSaverListener` instances"
    return tuple(all_of(tf.compat.v1.train.CheckpointSaverListener, listeners, rule))


# The original's specs look for these in their module.
_training._validate_input_fn = check_input_fn
_training._validate_hooks = _checked_hooks  # Keras callbacks, too
_training._validate_saving_listeners = _checked_listeners


class TrainSpec(_training.TrainSpec):
    """The training part of `train_and_evaluate`.

    Args:
      input_fn: returns a Dataset or tensors of features, or of (features, labels).
      max_steps: the global step to reach; None to train until the data ends.
      hooks: hooks of the training.
      saving_listeners: called before and after every checkpoint.

    Raises:
      ValueError: `max_steps` is not positive.
      TypeError: an argument of another type.

    Example:
      >>> TrainSpec(input_fn, max_steps=1000).max_steps
      1000
    """

    __new__ = original.checked(_training.TrainSpec.__new__, _check_spec)


class EvalSpec(_training.EvalSpec):
    """The evaluation and export part of `train_and_evaluate`.

    Args:
      input_fn: returns a Dataset or tensors of features, or of (features, labels).
      steps: the number of steps of an evaluation; None for all of the data.
      name: name of the evaluation; part of the directory of its events.
      hooks: hooks of the evaluation.
      exporters: an `Exporter` or several, called after each evaluation.
      start_delay_secs: seconds that an evaluator task waits before its first evaluation.
      throttle_secs: least number of seconds from the start of one evaluation to the next.

    Raises:
      ValueError: a number out of range; an exporter without a name, or two of one name.
      TypeError: an argument of another type.

    Example:
      >>> EvalSpec(input_fn, steps=10, throttle_secs=60).steps
      10
    """

    __new__ = original.checked(_training.EvalSpec.__new__, _check_spec)


@calls.observed
def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[Results | None, list[Any] | None] | None:
    """Trains, and evaluates and exports the checkpoints of the training.

    Without a cluster in TF_CONFIG, one process trains, and evaluates after each checkpoint.
    `save_checkpoints_steps` or `save_checkpoints_secs` of the RunConfig set the interval;
    `EvalSpec.throttle_secs` is the least time between two evaluations. In a cluster, `chief`,
    `master` and `worker` train together. `evaluator` evaluates new checkpoints until one has
    reached `TrainSpec.max_steps`, and `master` also evaluates. `ps` serves variables, and never
    returns.

    Args:
      estimator: an `Estimator` or `TPUEstimator`.
      train_spec: the training data and limits.
      eval_spec: the evaluation data and the exporters.

    Returns:
      (metrics of the last evaluation, results of its exporters); (None, None) if the model had
      already reached `max_steps`. None in a cluster.

    Raises:
      TypeError: an argument of another type.
      ValueError: TF_CONFIG names another task, or `ps` where steps run.
    """
    returned: tuple[Results | None, list[Any] | None] | None
    returned = _training.train_and_evaluate(estimator, train_spec, eval_spec)
    return returned


class _Executor(_training._TrainingExecutor):
    def run(self) -> Any:
        config = self._estimator.config
        is_trained = config.cluster_spec and config.task_type != TaskType.EVALUATOR
        if is_trained and not takes_session(config):
            cluster.check_no_parameter_servers(config)
        return super().run()

    def run_ps(self) -> None:
        self._start_distributed_training(())

    def _start_distributed_training(self, saving_listeners: tuple[Any, ...] = ()) -> None:
        config, spec = self._estimator.config, self._train_spec
        if takes_session(config):
            from tpu_estimator_compat.engine.original import cluster as parameter_servers

            parameter_servers.run(self._estimator, spec, saving_listeners)
            return
        if config.task_type == TaskType.WORKER and getattr(config, "cluster", None) is not None:
            logging.warning(
                "train_and_evaluate with RunConfig(cluster=...), the hosts of a TPU: as with the "
                "original, this process is a worker of that cluster, which trains and does not "
                "evaluate. Call train() and evaluate() in turn instead."
            )
        self._estimator.train(
            input_fn=spec.input_fn,
            max_steps=spec.max_steps,
            hooks=list(spec.hooks),
            saving_listeners=saving_listeners,
        )


class _EvaluatingListener(_training._NewCheckpointListenerForEvaluate):
    """Evaluates the checkpoints that training saves, unless a signal ends the training."""

    def _evaluate(self, global_step_value: int) -> None:
        self._timer.update_last_triggered_step(global_step_value)
        if preemption.ends_soon():
            logging.info("Skip the current checkpoint eval: a signal ends training.")
            return
        with preemption.evaluating():
            self.eval_result, self.export_results = self._evaluator.evaluate_and_export()
        if self.eval_result.status != _training._EvalStatus.EVALUATED:
            raise RuntimeError(
                "There was no new checkpoint after the training, at step "
                f"{global_step_value}. Did a hook or another process delete or rename it?"
            )


# The original's function looks for these in its module.
_training._TrainingExecutor = _Executor
_training._NewCheckpointListenerForEvaluate = _EvaluatingListener
