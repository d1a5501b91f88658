"""`tf.contrib.learn.Experiment`: an estimator with its inputs and schedules."""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.checkpoint.state import latest, warn_if_older
from tpu_estimator_compat.engine.topology.chosen_topology import takes_session
from tpu_estimator_compat.estimator import Estimator
from tpu_estimator_compat.estimator.tpu import TPUEstimator
from tpu_estimator_compat.old_names.contrib.learn.export_strategy import ExportStrategy
from tpu_estimator_compat.old_names.contrib.learn.monitors import (
    ValidationMonitor,
    replace_monitors_with_hooks,
)

_ONE_PASS = "one_pass"  # the name of single evaluations
_STEPS_PER_ITERATION = 1000
_SECONDS_BETWEEN_WARNINGS = 600


class _EvaluationListener(tf.train.CheckpointSaverListener):
    def __init__(self, evaluate_and_export: Callable[[str], tuple[Any, Any]], model_dir: str):
        self.results: tuple[Any, Any] = (None, None)
        self._evaluate_and_export = evaluate_and_export
        self._model_dir = model_dir

    def after_save(self, session: Any, global_step_value: int) -> None:
        del session, global_step_value
        path = latest(self._model_dir)
        if path:
            self.results = self._evaluate_and_export(path)


class Experiment:
    """A `tf.estimator.Estimator` with its training and evaluation data.

    `eval_metrics` must be None: it was for another kind of estimator. `train_and_evaluate` looks
    for a new checkpoint every `min_eval_frequency` steps; None means 1, and 0 evaluates only at the
    end. `local_run` uses `local_eval_frequency` instead, where None means 0.
    `checkpoint_and_export` evaluates and exports each checkpoint. With
    `delay_workers_by_global_step`, workers delay their start by steps, not seconds.
    """

    def __init__(
        self,
        estimator: Estimator,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: dict[str, Any] | None = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Iterable[Any] | None = None,
        eval_hooks: Iterable[Any] | None = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Any = None,
        check_interval_secs: float = 5,
    ):
        _check(estimator, eval_metrics, train_steps_per_iteration)
        self.estimator = estimator
        self.train_steps = train_steps
        self.eval_steps = eval_steps
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._train_monitors = list(train_monitors or [])
        self._eval_hooks = list(eval_hooks or [])
        self._local_eval_frequency = local_eval_frequency
        self._eval_delay_secs = eval_delay_secs
        self._throttle_secs = continuous_eval_throttle_secs
        self._min_eval_frequency = 1 if min_eval_frequency is None else min_eval_frequency
        self._delay_by_step = delay_workers_by_global_step
        self._steps_per_iteration = train_steps_per_iteration
        self._checkpoint_and_export = checkpoint_and_export
        self._saving_listeners = saving_listeners
        self._check_interval_secs = check_interval_secs
        self._server: Any = None
        self._export_strategies: tuple[ExportStrategy, ...] = ()
        self.reset_export_strategies(export_strategies)

    @property
    def eval_metrics(self) -> None:
        """None: model_fn defines all metrics."""

    def extend_train_hooks(self, additional_hooks: Iterable[Any]) -> None:
        self._train_monitors.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> Any:
        """Replaces the export strategies; returns the old ones."""
        new = new_export_strategies
        strategies = (new,) if isinstance(new, ExportStrategy) else tuple(new or ())
        for strategy in strategies:
            if not isinstance(strategy, ExportStrategy):
                raise ValueError(
                    "`export_strategies` must be an ExportStrategy, an iterable of "
                    f"ExportStrategy, or `None`, found {strategy}."
                )
        old, self._export_strategies = self._export_strategies, strategies
        return old

    def train(self, delay_secs: float | None = None) -> Estimator:
        """Trains up to `train_steps`; by default, worker i starts after 5 i seconds, at most 60."""
        hooks = list(self._train_monitors)
        task = self.estimator.config.task_id or 0
        if delay_secs is None and self._delay_by_step:
            hooks.append(tf.train.GlobalStepWaiterHook(int(8000.0 * math.log(task + 1))))
        elif delay_secs is None:
            delay_secs = min(60, task * 5)
        _wait(delay_secs, "starting training")
        return self._train(hooks, max_steps=self.train_steps)

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> dict[str, Any]:
        """Evaluates once, after `delay_secs`, or `eval_delay_secs` for None."""
        _wait(self._eval_delay_secs if delay_secs is None else delay_secs, "starting eval")
        return self._evaluate(name or _ONE_PASS)

    def local_run(self) -> Any:
        """`train_and_evaluate` with `local_eval_frequency`."""
        return self._train_and_evaluate(self._local_eval_frequency)

    def train_and_evaluate(self) -> tuple[dict[str, Any], list[Any]]:
        """Trains and evaluates checkpoints; returns (last metrics, results of the last exports)."""
        return self._train_and_evaluate(self._min_eval_frequency)

    def _train_and_evaluate(self, frequency: int | None) -> tuple[dict[str, Any], list[Any]]:
        config = self.estimator.config
        saves = config.save_checkpoints_secs or config.save_checkpoints_steps
        if self._checkpoint_and_export and saves:
            listener = _EvaluationListener(self._evaluate_and_export, self.estimator.model_dir)
            self._train(self._train_monitors, [listener], max_steps=self.train_steps)
            return listener.results
        monitors = list(self._train_monitors)
        if frequency:
            monitors.append(
                ValidationMonitor(
                    input_fn=self._eval_input_fn,
                    eval_steps=self.eval_steps,
                    every_n_steps=frequency,
                    hooks=self._eval_hooks,
                    check_interval_secs=self._check_interval_secs,
                )
            )
        self._train(monitors, max_steps=self.train_steps)
        return self._evaluate_and_export(None)

    def continuous_train_and_eval(
        self, continuous_eval_predicate_fn: Callable[..., Any] | None = None
    ) -> tuple[Any, Any]:
        """Alternates training and evaluation, up to `train_steps`.

        The predicate takes the last metrics (None at first), and optionally `checkpoint_path`; it
        returns whether to go on. Returns are those of `train_and_evaluate`.
        """
        goes_on = _predicate(continuous_eval_predicate_fn)
        steps = self._steps_per_iteration
        if steps is None:
            steps = int(self.train_steps / 10) if self.train_steps else _STEPS_PER_ITERATION
        results, exports, path = None, None, None
        while goes_on(results, path) and not self._is_trained(results):
            self._train(self._train_monitors, steps=steps)
            path = latest(self.estimator.model_dir)
            results = self._evaluate(_ONE_PASS, path)
            exports = self._export(results)
        return results, exports

    def continuous_eval(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: Callable[..., Any] | None = None,
        name: str = "continuous",
    ) -> None:
        """Evaluates and exports new checkpoints, until one has reached `train_steps`.

        Delays are by default the constructor's. The predicate is as in `continuous_train_and_eval`,
        but gets {} where no checkpoint is new.
        """
        goes_on = _predicate(continuous_eval_predicate_fn)
        throttle = self._throttle_secs if throttle_delay_secs is None else throttle_delay_secs
        _wait(self._eval_delay_secs if delay_secs is None else delay_secs, "starting eval")
        results, evaluated, warned = None, None, -math.inf
        while goes_on(results, evaluated) and not self._is_trained(results):
            start = time.time()
            path = latest(self.estimator.model_dir)
            if path and not (evaluate_checkpoint_only_once and path == evaluated):
                results = self._evaluate(name, path)
                self._export(results, path)
                evaluated = path
            else:
                results = {}
                if start - warned > _SECONDS_BETWEEN_WARNINGS:
                    tf.logging.warning("No new checkpoint ready for evaluation.")
                    warned = start
            _wait(throttle - (time.time() - start), "starting next eval run")

    def test(self) -> dict[str, Any]:
        """Trains and evaluates for one step, and exports; returns the metrics."""
        self._train(self._train_monitors, steps=1)
        results = self._evaluate(_ONE_PASS, steps=1)
        self._export(results)
        return results

    def run_std_server(self) -> None:
        """Serves the variables of a parameter server, until a signal ends the process."""
        from tpu_estimator_compat.engine.original import cluster

        cluster.serve(self.estimator)

    def _train(self, monitors: Iterable[Any], listeners: Any = None, **steps: Any) -> Estimator:
        hooks = replace_monitors_with_hooks(list(monitors), self.estimator)
        listeners = [*(self._saving_listeners or []), *(listeners or [])] or None
        config = self.estimator.config
        if config.cluster_spec and takes_session(config) and self._server is None:
            from tpu_estimator_compat.engine.original import cluster

            self._server = cluster.start_server(self.estimator)
        return self.estimator.train(
            self._train_input_fn, hooks=hooks, saving_listeners=listeners, **steps
        )

    def _evaluate(
        self, name: str | None, checkpoint_path: str | None = None, steps: int | None = None
    ) -> dict[str, Any]:
        if checkpoint_path:
            warn_if_older(checkpoint_path, self.estimator.model_dir)
        return self.estimator.evaluate(
            self._eval_input_fn, steps or self.eval_steps, self._eval_hooks, checkpoint_path, name
        )

    def _evaluate_and_export(self, path: str | None) -> tuple[dict[str, Any], list[Any]]:
        results = self._evaluate(None, path)
        return results, self._export(results, path)

    def _export(self, results: Any, path: str | None = None) -> list[Any]:
        folder = os.path.join(self.estimator.model_dir, "export")
        return [
            strategy.export(self.estimator, os.path.join(folder, strategy.name), path, results)
            for strategy in self._export_strategies
        ]

    def _is_trained(self, results: Any) -> bool:
        step = (results or {}).get(tf.GraphKeys.GLOBAL_STEP)
        return bool(step and self.train_steps and step >= self.train_steps)


def _check(estimator: Any, eval_metrics: Any, train_steps_per_iteration: Any) -> None:
    if not isinstance(estimator, Estimator):
        raise ValueError(f"`estimator` must be a `tf.estimator.Estimator`, got {estimator!r}.")
    if eval_metrics is not None:
        raise ValueError(
            "`eval_metrics` must be `None` with `tf.estimator.Estimator`. Use "
            "`eval_metric_ops` in `tf.estimator.EstimatorSpec` instead."
        )
    if not isinstance(train_steps_per_iteration, int | None):
        raise ValueError("`train_steps_per_iteration` must be an integer.")
    if isinstance(estimator, TPUEstimator):
        tf.logging.warning(
            "`Experiment` class cannot work with `tf.contrib.tpu.TPUEstimator`. Please call "
            "`TPUEstimator` train/evaluate directly."
        )


def _predicate(function: Callable[..., Any] | None) -> Callable[[Any, str | None], Any]:
    if function is None:
        return lambda results, path: True
    if not callable(function):
        raise ValueError("`continuous_eval_predicate_fn` must be a callable, or None.")
    if "checkpoint_path" in inspect.signature(function).parameters:
        return lambda results, path: function(results, checkpoint_path=path)
    return lambda results, path: function(results)


def _wait(seconds: float | None, what: str) -> None:
    if seconds and seconds > 0:
        tf.logging.info("Waiting %f secs before %s.", seconds, what)
        time.sleep(seconds)


__all__ = ["Experiment"]
