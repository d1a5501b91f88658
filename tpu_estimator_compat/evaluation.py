"""Evaluation: runs the metrics' updates over the data, then reads their values once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.callbacks import Pacer
from tpu_estimator_compat.callbacks.evaluation_events import write_results
from tpu_estimator_compat.checkpoint import StepSessionCreator
from tpu_estimator_compat.config import IterationsPerLoopCounter
from tpu_estimator_compat.inputs import Feed
from tpu_estimator_compat.machines_session import leaving_together
from tpu_estimator_compat.metrics import metric_pairs, sum_over_replicas
from tpu_estimator_compat.mode_run import ModeRun
from tpu_estimator_compat.spec import WarmStartSettings
from tpu_estimator_compat.training import host_call_targets, scaffold_of

Hook = Any  # a tf.compat.v1.train.SessionRunHook


@dataclasses.dataclass(frozen=True)
class EvalRequest:
    """What one call of `evaluate` asks for.

    Attributes:
      hooks: the caller's hooks.
      steps: how many steps; None to run to the end of the data.
      checkpoint_path: the checkpoint to evaluate; None to evaluate first values.
      warm_start: where first values come from, without a checkpoint.
      output_dir: where the events go.
      fall_back_in: the directory to look for older checkpoints in, if that cannot be read; None
        where the caller chose it.
    """

    hooks: Sequence[Hook]
    steps: int | None
    checkpoint_path: str | None
    warm_start: WarmStartSettings | None
    output_dir: str
    fall_back_in: str | None = None


def evaluate(run: ModeRun, feed: Feed, request: EvalRequest) -> dict[str, Any]:
    """Evaluates and writes the results as events.

    Args:
      run: the prepared EVAL mode.
      feed: its input.
      request: limits, checkpoint and listeners.

    Returns:
      Metric name to numpy value, with `loss` (the mean over steps) and `global_step`.
    """
    logging.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%S"))
    started = time.perf_counter()
    with run.in_graph():
        if not request.checkpoint_path and request.warm_start:
            run.warm_start(request.warm_start)
        pairs = metric_pairs(run)
        targets = [update for _, update in pairs.values()] + host_call_targets(run)
        values = {name: value for name, (value, _) in sorted(pairs.items())}
        values["global_step"] = tf.compat.v1.train.get_global_step(run.graph)
        results, path = _run(run, feed, request, targets, values)
    logging.info("Inference Time : %0.5fs", time.perf_counter() - started)
    logging.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S"))
    if run.writes_files:
        write_results(request.output_dir, results, path)
    return results


def _run(
    run: ModeRun,
    feed: Feed,
    request: EvalRequest,
    targets: Sequence[tf.Operation],
    values: dict[str, tf.Tensor],
) -> tuple[dict[str, Any], str | None]:
    """The metrics' values, and the checkpoint that they are of."""
    scaffold = scaffold_of(run)
    creator = StepSessionCreator(
        lambda: run.step_session(feed, loss=run.spec.loss, targets=targets),
        scaffold,
        checkpoint_dir=request.fall_back_in if request.checkpoint_path else None,
        checkpoint_filename_with_path=request.checkpoint_path,
    )
    final = _Results(run, values)
    hooks = [*request.hooks, *(run.spec.evaluation_hooks or []), final]
    loop = None
    if run.topology.tpu_semantics and request.steps is not None:
        loop = IterationsPerLoopCounter(request.steps, "count")  # all steps in one loop
    pacer = Pacer(hooks, loop)
    progress = _Progress(request.steps)
    with leaving_together(creator, hooks) as monitored:
        while not monitored.should_stop() and progress.left():
            session = monitored._tf_sess()
            pacer.before_run(session, progress.done)
            session.steps_per_run = min(session.steps_per_run, progress.left())
            monitored.run(list(targets))
            progress.advance(session.steps_last_run)
            pacer.after_run(session, progress.done)
    return final.values, creator.restored


class _Results(tf.compat.v1.train.SessionRunHook):
    """Reads the metrics when the last step is done."""

    def __init__(self, run: ModeRun, tensors: dict[str, tf.Tensor]):
        self._run = run
        self._tensors = tensors
        self.values: dict[str, Any] = {}

    def steps_until_control(self, global_step: int) -> None:
        """Never: only the end matters."""
        del global_step

    def end(self, session) -> None:
        if not self._run.topology.tpu_semantics:
            sum_over_replicas(self._run)
        self.values = session.run(self._tensors)


class _Progress:
    """Counts steps and logs every tenth of them, in the original's words."""

    _ENDLESS = 2**62

    def __init__(self, steps: int | None):
        self._steps = steps
        self.done = 0

    def left(self) -> int:
        return self._ENDLESS if self._steps is None else self._steps - self.done

    def advance(self, steps: int) -> None:
        before = self.done
        self.done += steps
        if self._steps is None:
            return
        tenth = max(1, self._steps // 10)
        if self.done // tenth > before // tenth or self.done == self._steps:
            logging.info("Evaluation [%d/%d]", self.done, self._steps)
