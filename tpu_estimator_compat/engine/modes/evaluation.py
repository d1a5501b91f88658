"""Evaluation: runs the metrics' updates over the data, then reads their values."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import IterationsPerLoopCounter
from tpu_estimator_compat.engine.checkpoint.state import CheckpointSource
from tpu_estimator_compat.engine.hooks import Schedule, preemption, split_hooks
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.metrics import sum_over_replicas
from tpu_estimator_compat.engine.modes.model_modes import Model
from tpu_estimator_compat.engine.modes.plans import evaluation_plan
from tpu_estimator_compat.engine.modes.ready_mode import make_ready, warn_if_untrained
from tpu_estimator_compat.engine.modes.training import writer_hooks
from tpu_estimator_compat.engine.session.session_creator import (
    SessionCreator,
    Together,
    monitored_session,
)
from tpu_estimator_compat.engine.session.step_session import StepSession
from tpu_estimator_compat.spec import WarmStartSettings

Hook = Any  # a tf.compat.v1.train.SessionRunHook


@dataclasses.dataclass(frozen=True)
class EvalRequest:
    """The arguments of one `evaluate` call; with `steps=None` it runs to the end of the data.

    Without a path in `source`, variables are initialized, and warm-started from `warm_start`.
    """

    hooks: Sequence[Hook]
    steps: int | None
    source: CheckpointSource
    warm_start: WarmStartSettings | None
    output_dir: str


class Evaluation:
    """An evaluation with a complete graph, which can run many times."""

    def __init__(
        self,
        model: Model,
        captured: CapturedMode,
        deployed_input: DeployedInput,
        request: EvalRequest,
    ):
        self._model = model
        self._captured = captured
        self._deployed_input = deployed_input
        self._request = request
        with captured.in_graph():
            captured.start(None if request.source.path else request.warm_start)
            plan, pairs = evaluation_plan(captured)
            outputs = {name: value for name, (value, _) in sorted(pairs.items())}
            self._mode = make_ready(captured, plan, outputs)
            model.modes.drive(self._mode)
            step = tf.compat.v1.train.get_global_step(captured.graph)
            self._results = {**self._mode.outputs, "global_step": step}

    @property
    def scaffold(self) -> tf.compat.v1.train.Scaffold:
        return self._mode.scaffold

    def __call__(self, variables: Mapping[str, np.ndarray] | None = None) -> dict[str, Any]:
        """Evaluates and writes the results as events.

        Values in `variables`, by name, take the place of a checkpoint's. Returns metric name to
        numpy value, with `loss` (the mean over steps) and `global_step`.
        """
        logging.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%S"))
        started = time.perf_counter()
        with self._captured.in_graph(), preemption.evaluating():
            if variables is None and not self._request.source.path:
                warn_if_untrained(self._captured, self.scaffold)
            scaffold = self._scaffold_with(variables)
            restored, results = self._loop(scaffold)
        logging.info("Inference Time : %0.5fs", time.perf_counter() - started)
        logging.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S"))
        if self._captured.writes_files:
            self._write(results, restored)
        return results

    def _write(self, results: dict[str, Any], restored: str | None) -> None:
        from tpu_estimator_compat.engine.packages import tensorflow_estimator

        folder, step = self._request.output_dir, int(results["global_step"])
        original = tensorflow_estimator.module("estimator")
        with self._captured.in_graph():  # with which a new file of events begins
            original._write_dict_to_summary(folder, results, step)
            if restored:
                original._write_checkpoint_path_to_summary(folder, restored, step)

    def _scaffold_with(
        self, variables: Mapping[str, np.ndarray] | None
    ) -> tf.compat.v1.train.Scaffold:
        if variables is None:
            return self.scaffold

        def assign(*unused_arguments: Any) -> None:
            for name, value in variables.items():
                self._captured.store.assign(name, value)

        return tf.compat.v1.train.Scaffold(init_fn=assign, copy_from_scaffold=self.scaffold)

    def _loop(self, scaffold: tf.compat.v1.train.Scaffold) -> tuple[str | None, dict[str, Any]]:
        """Runs the updates; returns the restored checkpoint and the metrics' values."""
        captured, request = self._captured, self._request
        final = _Results(captured, self._results)
        loop, stop = None, []
        if request.steps is not None:
            stop = [_StopAfter(request.steps, log_all=not captured.topology.tpu_semantics)]
            if captured.topology.tpu_semantics:
                loop = IterationsPerLoopCounter(request.steps, "count")  # all steps in one loop
        request_hooks, keras_callbacks = split_hooks(
            request.hooks,
            self._model,
            captured.mode,
            {"loss": captured.spec.loss},
            results=lambda: final.final_ops_values,
        )
        hooks = [*request_hooks, *stop, *writer_hooks(captured), *captured.spec.hooks, final]
        hooks += keras_callbacks
        schedule = Schedule(hooks, loop)
        creator = SessionCreator(
            lambda: self._mode.step_session(self._deployed_input, schedule.limits),
            scaffold,
            request.source,
        )
        with Together(creator), monitored_session(creator, hooks) as monitored:
            while not monitored.should_stop():
                schedule.run(monitored, list(self._mode.plan.targets))
        self._warn_if_data_ended(creator.session)
        return creator.restored, final.final_ops_values

    def _warn_if_data_ended(self, session: StepSession | None) -> None:
        wanted = self._request.steps
        if wanted is None or wanted == math.inf:
            return
        if session and session.data_ended and session.steps_made < wanted:
            logging.warning(
                "The data ended at step %d of %s of the evaluation (steps=%s). The results are "
                "those of the steps that were made.",
                session.steps_made,
                wanted,
                wanted,
            )


def evaluate(
    model: Model, captured: CapturedMode, deployed_input: DeployedInput, request: EvalRequest
) -> dict[str, Any]:
    """Evaluates once."""
    return Evaluation(model, captured, deployed_input, request)()


class _Results(tf.compat.v1.train.FinalOpsHook):
    """Reads the metrics' values at the end; TensorFlow's hook warns if they need more input."""

    def __init__(self, captured: CapturedMode, tensors: dict[str, tf.Tensor]):
        super().__init__(tensors)
        self._captured = captured

    def end(self, session) -> None:
        if not self._captured.topology.tpu_semantics:
            sum_over_replicas(self._captured)
        super().end(session)


class _StopAfter(tf.compat.v1.train.SessionRunHook):
    """Stops after `steps`; as the original, logs the last and, if `log_all`, each tenth part."""

    def __init__(self, steps: int, log_all: bool):
        self._steps = steps
        self._tenth = max(1, steps // 10) if log_all else steps

    def begin(self) -> None:
        self._done = 0

    def steps_until_control(self, global_step: int) -> int:
        del global_step
        # A run ends where a line is due: a later step may fail.
        return min(self._steps - self._done, self._tenth - self._done % self._tenth)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        before, self._done = self._done, self._done + run_context.session.steps_last_run
        for step in range(before + 1, self._done + 1):
            if step == self._steps or not step % self._tenth:
                logging.info("Evaluation [%d/%d]", step, self._steps)
        if self._done >= self._steps:
            run_context.request_stop()
