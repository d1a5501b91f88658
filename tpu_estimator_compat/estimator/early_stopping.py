"""Early stopping: the original's hooks that watch a metric, as turns of this package's loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config.arguments import check_number, check_steps, check_type
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.hooks import traits
from tpu_estimator_compat.engine.topology.chosen_topology import takes_session
from tpu_estimator_compat.estimator import original
from tpu_estimator_compat.estimator.estimator import Estimator

Hook = Any  # a tf.compat.v1.train.SessionRunHook
_original: Any = original.module("early_stopping")
_hooks: Any = original.module("hooks.hooks")
read_eval_metrics = _original.read_eval_metrics


class StopWithChiefHook(tf.compat.v1.train.SessionRunHook):
    """Creates the variable `STOP` on a worker, which stops when the chief stops.

    The original's hook reads the variable after every step, as in sessions; the machines that make
    steps together agree on each step.
    """

    def begin(self) -> None:
        _original._get_or_create_stop_var()


traits.ROWS.update(
    {
        StopWithChiefHook: traits.row(traits.never),
        _original._StopOnPredicateHook: traits.row(traits.after_step),
        _hooks._StopAtCheckpointStepHook: traits.row(traits.last_step, looks_at_host_calls=True),
    }
)


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
    if not estimator.config.is_chief:
        in_session = takes_session(estimator.config)
        return _original._CheckForStoppingHook() if in_session else StopWithChiefHook()
    if not callable(should_stop_fn):
        raise TypeError(f"`should_stop_fn` must be callable, given: {should_stop_fn}")
    return _original._StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)


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
    make = _hooks.make_stop_at_checkpoint_step_hook
    return make(estimator, last_step, wait_after_file_check_secs)


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}"
        )


def events(pattern: str) -> Iterator[Any]:
    """The events of the files that match a pattern; warns where a file is damaged."""
    for path in tf.io.gfile.glob(pattern):
        try:
            yield from tf.compat.v1.train.summary_iterator(path)
        except tf.errors.DataLossError as error:
            logging.warning(
                "Skipping rest of the file due to encountering data corruption error; file path: "
                "%s; original error raised by `tf.train.summary_iterator`: %s",
                path,
                error,
            )


def _summaries(eval_dir: str) -> Iterator[Any]:
    return events(os.path.join(user_files.literal(eval_dir), "events.out.tfevents.*"))


class _Metrics(dict[str, float]):
    """The metrics of an evaluation; says which there are instead of a missing one."""

    def __init__(self, metrics: dict[str, float], step: int, directory: str):
        super().__init__(metrics)
        self._where = f"the evaluation at step {step} in {directory}"

    def __missing__(self, name: str) -> float:
        raise KeyError(
            f"{name!r} is not among the metrics of {self._where}: {sorted(self)}. Early stopping "
            "needs one of them."
        )


def _read(directory: str) -> dict[int, _Metrics]:
    found = read_eval_metrics(directory)
    return {step: _Metrics(metrics, step, directory) for step, metrics in found.items()}


def _check(given: dict[str, Any]) -> None:
    _check_estimator(given["estimator"])
    check_type(given["metric_name"], "metric_name", str, "a name of a metric (str)")
    check_number(given["min_steps"], "min_steps")
    for name in given:
        if name == "threshold" or name.startswith("max_steps_without_"):
            check_number(given[name], name, least=None if name == "threshold" else 0)


# The original's functions look for these in their module.
_original.make_early_stopping_hook = make_early_stopping_hook
_original.read_eval_metrics = _read
_original._summaries = _summaries  # a folder may have any name
for _name in [name for name in vars(_original) if name.startswith("stop_if_")]:
    setattr(_original, _name, original.checked(getattr(_original, _name), _check))

stop_if_higher_hook = _original.stop_if_higher_hook
stop_if_lower_hook = _original.stop_if_lower_hook
stop_if_no_increase_hook = _original.stop_if_no_increase_hook
stop_if_no_decrease_hook = _original.stop_if_no_decrease_hook
