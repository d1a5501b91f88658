"""`tf.contrib.learn.monitors.ValidationMonitor`: evaluates in the middle of training."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib.learn.monitor_base import EveryN

Hook = Any  # a tf.train.SessionRunHook


class ValidationMonitor(EveryN):
    """Evaluates checkpoints while an estimator is trained, and may stop it early.

    `x`, `y`, `batch_size` and `metrics` were for another kind of estimator: they must be None.
    Training stops when `early_stopping_rounds` steps brought nothing better; None for never. Looks
    for a new checkpoint are `every_n_steps` apart, and `check_interval_secs` at least.
    """

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Any = None,
        hooks: Sequence[Hook] | None = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
        check_interval_secs: float | None = 5,
    ):
        super().__init__(every_n_steps=every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self._of_learn = (x, y, batch_size, metrics)
        self.input_fn = input_fn
        self.eval_steps = eval_steps
        self.hooks = hooks
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_metric = early_stopping_metric
        self.early_stopping_metric_minimize = early_stopping_metric_minimize
        self.name = name
        self.check_interval_secs = check_interval_secs
        self._last_look = -math.inf
        self.early_stopped = False
        self.best_step: int | None = None
        self.best_value: Any = None
        self.best_metrics: dict[str, Any] | None = None
        self._latest_path: str | None = None

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        super().every_n_step_end(step, outputs)
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        if not self._looks():
            return False
        path = tf.train.latest_checkpoint(self._estimator.model_dir)
        if path is None or path == self._latest_path:
            tf.logging.debug("Skipping evaluation at step %d: no new checkpoint.", step)
            return False
        self._latest_path = path
        results = self._evaluate()
        shown = ", ".join(f"{name} = {value!s}" for name, value in results.items())
        tf.logging.info("Validation (step %d): %s", step, shown)
        return self.early_stopping_rounds is not None and self._is_enough(step, results)

    def _looks(self) -> bool:
        """Whether the last look for a checkpoint is long enough ago; if so, this is one."""
        now, least = time.time(), self.check_interval_secs
        if least is not None and now - self._last_look < least:
            return False
        self._last_look = now
        return True

    def _evaluate(self) -> dict[str, Any]:
        if any(value is not None for value in self._of_learn):
            raise ValueError(
                "tf.estimator.Estimator does not support following arguments: x, y, batch_size, "
                "metrics. Should set as `None` in ValidationMonitor"
            )
        return self._estimator.evaluate(
            input_fn=self.input_fn, steps=self.eval_steps, hooks=self.hooks, name=self.name
        )

    def _is_enough(self, step: int, results: dict[str, Any]) -> bool:
        metric = self.early_stopping_metric
        if metric not in results:
            raise ValueError(f"Metric {metric} missing from outputs {set(results)}.")
        value, best = results[metric], self.best_value
        better = best is None or (
            value < best if self.early_stopping_metric_minimize else value > best
        )
        if better:
            self.best_step, self.best_value = step, value
            self.best_metrics = copy.deepcopy(results)
        assert self.best_step is not None
        assert self.early_stopping_rounds is not None
        if step - self.best_step < self.early_stopping_rounds:
            return False
        tf.logging.info(
            "Stopping. Best step: %s with %s = %s.", self.best_step, metric, self.best_value
        )
        self.early_stopped = True
        return True
