"""`train_and_evaluate`: trains and evaluates in turn, or does this cluster task's part."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig, TaskType
from tpu_estimator_compat.engine.checkpoint import warn_if_older
from tpu_estimator_compat.engine.hooks import preemption
from tpu_estimator_compat.engine.topology import cluster, takes_session
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.estimator.schedule_specs import EvalSpec, TrainSpec
from tpu_estimator_compat.keras_model import calls

Results = dict[str, Any]
_TASKS = (TaskType.CHIEF, TaskType.MASTER, TaskType.PS, TaskType.WORKER)
_SECONDS_BETWEEN_WARNINGS = 600


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
    _check_arguments(estimator, train_spec, eval_spec)
    config = estimator.config
    if config.task_type == TaskType.EVALUATOR:
        _evaluate_continuously(estimator, train_spec, eval_spec)
        return None
    evaluator = _Evaluator(estimator, eval_spec, train_spec.max_steps)
    listener = _EvaluatingListener(evaluator, eval_spec.throttle_secs)
    if not config.cluster_spec:
        return _run_locally(estimator, train_spec, listener)
    _check_cluster(config)
    listeners = _listeners(config, train_spec, listener)
    if takes_session(config):
        from tpu_estimator_compat.engine.original import cluster as original

        original.run(estimator, train_spec, listeners)
    else:
        _train(estimator, train_spec, listeners)
    return None


def _listeners(
    config: RunConfig, train_spec: TrainSpec, evaluating: _EvaluatingListener
) -> tuple[Any, ...]:
    """The listeners of a task that trains in a cluster."""
    if config.task_type == TaskType.MASTER:
        return (*train_spec.saving_listeners, evaluating)
    if config.task_type != TaskType.WORKER:
        return train_spec.saving_listeners
    if getattr(config, "cluster", None) is not None:
        logging.warning(
            "train_and_evaluate with RunConfig(cluster=...), the hosts of a TPU: as with the "
            "original, this process is a worker of that cluster, which trains and does not "
            "evaluate. Call train() and evaluate() in turn instead."
        )
    return ()  # the chief writes checkpoints


def _check_arguments(estimator: Any, train_spec: Any, eval_spec: Any) -> None:
    wanted = {"eval_spec": EvalSpec, "estimator": Estimator, "train_spec": TrainSpec}
    given = {"eval_spec": eval_spec, "estimator": estimator, "train_spec": train_spec}
    for name, kind in wanted.items():
        if not isinstance(given[name], kind):
            text = f"`{name}` must have type `tf.estimator.{kind.__name__}`."
            raise TypeError(f"{text} Got: {type(given[name])}")


def _check_cluster(config: RunConfig) -> None:
    if not takes_session(config):
        cluster.check_no_parameter_servers(config)
    if config.task_type not in _TASKS:
        raise ValueError(
            f"Task type {config.task_type} is not supported. Supported task types are "
            f"{[*_TASKS, TaskType.EVALUATOR]}"
        )


def _train(estimator: Estimator, train_spec: TrainSpec, listeners: tuple[Any, ...]) -> None:
    estimator.train(
        input_fn=train_spec.input_fn,
        max_steps=train_spec.max_steps,
        hooks=list(train_spec.hooks),
        saving_listeners=listeners,
    )


def _run_locally(
    estimator: Estimator, train_spec: TrainSpec, listener: _EvaluatingListener
) -> tuple[Results | None, list[Any] | None]:
    config = estimator.config
    logging.info("Running training and evaluation locally (non-distributed).")
    logging.info(
        "Start train and evaluate loop. The evaluate will happen after every checkpoint. "
        "Checkpoint frequency is determined based on RunConfig arguments: save_checkpoints_steps "
        "%s or save_checkpoints_secs %s.",
        config.save_checkpoints_steps,
        config.save_checkpoints_secs,
    )
    _train(estimator, train_spec, (*train_spec.saving_listeners, listener))
    done = listener.evaluated
    return (done.metrics, done.exports) if done else (None, None)


def _evaluate_continuously(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> None:
    if estimator.config.task_id > 0:
        raise ValueError(
            "For distributed training, there can only be one `evaluator` task (with task id 0).  "
            f"Given task id {estimator.config.task_id}"
        )
    if eval_spec.start_delay_secs:
        logging.info("Waiting %f secs before starting eval.", eval_spec.start_delay_secs)
        time.sleep(eval_spec.start_delay_secs)
    evaluator = _Evaluator(estimator, eval_spec, train_spec.max_steps)
    while True:
        started = time.time()
        done = evaluator.evaluate_and_export()
        _throttle(eval_spec.throttle_secs, started, done)
        if done is not None and done.is_final:
            logging.info(
                "Exiting evaluation, global_step=%s >= train max_steps=%s",
                done.global_step,
                train_spec.max_steps,
            )
            return


def _throttle(seconds: float, started: float, done: _Evaluated | None) -> None:
    left = seconds - (time.time() - started)
    if left > 0:
        logging.info("Waiting %f secs before starting next eval run.", left)
        time.sleep(left)
    elif seconds == 0 and done is None:
        logging.warning(
            "EvalSpec.throttle_secs is set as 0. This might overload the job before finding (next) "
            "new checkpoint. Please consider to increase it."
        )


@dataclasses.dataclass(frozen=True)
class _Evaluated:
    metrics: Results
    exports: list[Any]
    is_final: bool

    @property
    def global_step(self) -> int:
        return int(self.metrics[tf.compat.v1.GraphKeys.GLOBAL_STEP])


class _Evaluator:
    def __init__(self, estimator: Estimator, eval_spec: EvalSpec, max_steps: int | None):
        self._estimator = estimator
        self._spec = eval_spec
        self._max_steps = max_steps
        self._last_path: str | None = None
        self._last_warning = 0.0

    def evaluate_and_export(self) -> _Evaluated | None:
        path = self._estimator.latest_checkpoint()
        if not path:
            self._warn(
                "Estimator is not trained yet. Will start an evaluation when a checkpoint is ready."
            )
            return None
        if path == self._last_path:
            self._warn(
                "No new checkpoint ready for evaluation. Skip the current evaluation pass as "
                "evaluation results are expected to be same for the same checkpoint."
            )
            return None
        warn_if_older(path, self._estimator.model_dir)
        metrics = self._estimator.evaluate(
            input_fn=self._spec.input_fn,
            steps=self._spec.steps,
            name=self._spec.name,
            checkpoint_path=path,
            hooks=self._spec.hooks,
        )
        step = metrics[tf.compat.v1.GraphKeys.GLOBAL_STEP]
        is_final = bool(self._max_steps and step >= self._max_steps)
        exports = [self._export(e, path, metrics, is_final) for e in self._spec.exporters]
        self._last_path = path
        self._last_warning = 0.0
        return _Evaluated(metrics, exports, is_final)

    def _export(self, exporter: Any, path: str, metrics: Results, is_final: bool) -> Any:
        return exporter.export(
            estimator=self._estimator,
            export_path=os.path.join(self._estimator.model_dir, "export", exporter.name),
            checkpoint_path=path,
            eval_result=metrics,
            is_the_final_export=is_final,
        )

    def _warn(self, message: str) -> None:
        """Logs at most every ten minutes: an evaluator may wait for hours."""
        if time.time() - self._last_warning > _SECONDS_BETWEEN_WARNINGS:
            logging.warning(message)
            self._last_warning = time.time()


class _EvaluatingListener(tf.compat.v1.train.CheckpointSaverListener):
    """Evaluates the checkpoints that training saves; `evaluated` is the last evaluation."""

    def __init__(self, evaluator: _Evaluator, throttle_secs: float):
        self._evaluator = evaluator
        self._throttle_secs = throttle_secs
        self.evaluated: _Evaluated | None = None

    def begin(self) -> None:
        self._timer = tf.compat.v1.train.SecondOrStepTimer(every_secs=self._throttle_secs)
        self._is_first_save = True

    def after_save(self, session: Any, global_step_value: int) -> None:
        del session
        if self._is_first_save:  # the checkpoint before the first step
            self._is_first_save = False
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)
        else:
            logging.info(
                "Skip the current checkpoint eval due to throttle secs (%s secs).",
                self._throttle_secs,
            )

    def end(self, session: Any, global_step_value: int) -> None:
        del session
        if global_step_value != self._timer.last_triggered_step():
            self._evaluate(global_step_value)

    def _evaluate(self, global_step: int) -> None:
        self._timer.update_last_triggered_step(global_step)
        if preemption.ends_soon():
            logging.info("Skip the current checkpoint eval: a signal ends training.")
            return
        with preemption.evaluating():
            evaluated = self._evaluator.evaluate_and_export()
        if evaluated is None:
            raise RuntimeError(
                "There was no new checkpoint after the training, at step "
                f"{global_step}. Did a hook or another process delete or rename it?"
            )
        self.evaluated = evaluated
