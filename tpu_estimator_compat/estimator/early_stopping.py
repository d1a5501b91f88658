"""Early stopping: training hooks that watch a metric of the evaluations."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config.arguments import check_number, check_steps, check_type
from tpu_estimator_compat.engine.checkpoint import global_step_in
from tpu_estimator_compat.engine.hooks.early_stopping import (
    StopAtCheckpointStepHook,
    StopOnPredicateHook,
    StopWithChiefHook,
    read_eval_metrics,
)
from tpu_estimator_compat.estimator.estimator import Estimator

Hook = Any  # a tf.compat.v1.train.SessionRunHook
Values = dict[int, float]


def make_early_stopping_hook(
    estimator: Estimator,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Hook:
    """A hook that ends training when `should_stop_fn` returns True.

    With several workers, the chief calls the function, and the others stop with the chief.

    Args:
      estimator: the estimator in training.
      should_stop_fn: takes no arguments, returns whether to stop.
      run_every_secs: seconds between two calls of `should_stop_fn`; or
      run_every_steps: steps between two calls.

    Raises:
      TypeError: an argument of another type.
      ValueError: both `run_every_secs` and `run_every_steps`, or a negative number.
    """
    _check_estimator(estimator)
    if run_every_secs is not None:
        check_number(run_every_secs, "run_every_secs", least=0)
    if run_every_steps is not None:
        check_number(run_every_steps, "run_every_steps", least=0)
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError(
            "Only one of `run_every_secs` and `run_every_steps` must be set. Got "
            f"{run_every_secs} and {run_every_steps}; pass None for the other."
        )
    if estimator.config.is_chief:
        return StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)
    return StopWithChiefHook()


def stop_if_higher_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Hook:
    """A hook that ends training when a metric rises above a threshold.

    Args:
      estimator: the estimator in training.
      metric_name: a key of the results of `evaluate`, such as `loss`.
      threshold: a metric above this value ends training.
      eval_dir: directory of the evaluation's events; None for `estimator.eval_dir()`.
      min_steps: evaluations before this global step do not count.
      run_every_secs: seconds between two reads of the events; or
      run_every_steps: steps between two reads.

    Raises:
      KeyError: in training, an evaluation lacks the metric.
      TypeError, ValueError: as `make_early_stopping_hook`.
    """
    crossed = _crosses(metric_name, threshold, operator.gt, "greater than")
    stop = _watching(crossed, estimator, metric_name, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, stop, run_every_secs, run_every_steps)


def stop_if_lower_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Hook:
    """A hook that ends training when a metric falls below a threshold.

    Arguments, return value and errors are those of `stop_if_higher_hook`.
    """
    crossed = _crosses(metric_name, threshold, operator.lt, "less than")
    stop = _watching(crossed, estimator, metric_name, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, stop, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Hook:
    """A hook that ends training when a metric has not risen for a number of steps.

    The other arguments, return value and errors are those of `stop_if_higher_hook`.

    Args:
      max_steps_without_increase: training ends at the first evaluation that is at least this
        many steps after the best one.
    """
    stalled = _stalls(metric_name, max_steps_without_increase, operator.gt, "increase")
    stop = _watching(stalled, estimator, metric_name, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, stop, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Hook:
    """A hook that ends training when a metric has not fallen for a number of steps.

    Arguments, return value and errors are those of `stop_if_no_increase_hook`.
    """
    stalled = _stalls(metric_name, max_steps_without_decrease, operator.lt, "decrease")
    stop = _watching(stalled, estimator, metric_name, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, stop, run_every_secs, run_every_steps)


def make_stop_at_checkpoint_step_hook(
    estimator: Estimator, last_step: int, wait_after_file_check_secs: float = 30
) -> Hook:
    """A hook that ends training at a global step; on workers, once its checkpoint is written.

    Args:
      estimator: the estimator in training.
      last_step: the global step to stop at.
      wait_after_file_check_secs: seconds between a worker's checks for the checkpoint.

    Raises:
      TypeError: an argument of another type.
      ValueError: `last_step` is None, or not positive.
    """
    _check_estimator(estimator)
    check_steps(last_step, "last_step")
    if estimator.config.is_chief:
        return tf.compat.v1.train.StopAtStepHook(last_step=last_step)
    checkpoint_step = functools.partial(global_step_in, estimator.model_dir)
    return StopAtCheckpointStepHook(checkpoint_step, last_step, wait_after_file_check_secs)


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}"
        )


def _watching(
    should_stop: Callable[[Values], bool],
    estimator: Estimator,
    metric_name: str,
    eval_dir: str | None,
    min_steps: int,
) -> Callable[[], bool]:
    """A function that reads the metric's values by global step for `should_stop`."""
    _check_estimator(estimator)
    check_type(metric_name, "metric_name", str, "a name of a metric (str)")
    check_number(min_steps, "min_steps")
    directory = estimator.eval_dir() if eval_dir is None else eval_dir

    def now() -> bool:
        values = {}
        for step, metrics in read_eval_metrics(directory).items():
            if step < min_steps:
                continue
            if metric_name not in metrics:
                raise KeyError(
                    f"{metric_name!r} is not among the metrics of the evaluation at step {step} in "
                    f"{directory}: {sorted(metrics)}. Early stopping needs one of them."
                )
            values[step] = metrics[metric_name]
        return should_stop(values)

    return now


def _crosses(
    metric_name: str, threshold: float, is_beyond: Callable[[float, float], bool], words: str
) -> Callable[[Values], bool]:
    check_number(threshold, "threshold")

    def crosses(values: Values) -> bool:
        for step, value in values.items():
            if is_beyond(value, threshold):
                logging.info(
                    'At step %s, metric "%s" has value %s which is %s the configured threshold '
                    "(%s) for early stopping.",
                    step,
                    metric_name,
                    value,
                    words,
                    threshold,
                )
                return True
        return False

    return crosses


def _stalls(
    metric_name: str, max_steps: int, is_better: Callable[[float, float], bool], word: str
) -> Callable[[Values], bool]:
    check_number(max_steps, f"max_steps_without_{word}", least=0)

    def stalls(values: Values) -> bool:
        best = best_step = None
        for step, value in values.items():
            if best is None or best_step is None or is_better(value, best):
                best, best_step = value, step
            if step - best_step >= max_steps:
                logging.info(
                    'No %s in metric "%s" for %s steps, which is greater than or equal to max '
                    "steps (%s) configured for early stopping.",
                    word,
                    metric_name,
                    step - best_step,
                    max_steps,
                )
                return True
        return False

    return stalls
