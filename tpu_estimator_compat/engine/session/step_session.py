"""The session of a mode, called by TF's MonitoredSession and its hooks.

`run` makes a step where a fetch needs one. If its targets include the plan's targets, it makes as
many steps as the limits say, and evaluates the other fetches with the last step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.cluster.group import State
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.graph.sources import with_lines
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.loop.runner import RunLimits, Runner
from tpu_estimator_compat.engine.session.graph_session import RunnerSession
from tpu_estimator_compat.engine.session.profiled_steps import ProfiledSteps
from tpu_estimator_compat.engine.session.session_input import SessionInput
from tpu_estimator_compat.engine.session.step_fetches import StepFetches
from tpu_estimator_compat.engine.session.variable_reader import VariableReader
from tpu_estimator_compat.engine.step.host_function import HostFunction, as_numpy

Fetches = Sequence[tf.Tensor]
Targets = Sequence[tf.Operation]
Feeds = Sequence[tuple[tf.Tensor, np.ndarray]]
_MOST_KNOWN = 64  # classified sets of fetches


class StepSession(RunnerSession):
    """A session whose steps take elements from a deployed input, within limits read at every run.

    `steps_last_run`, `steps_made`: steps of the plan's targets, in the last run of them and in all.
    """

    def __init__(
        self,
        make_runner: Callable[[], Runner],
        deployed_input: DeployedInput,
        limits: RunLimits,
        config: tf.compat.v1.ConfigProto | None = None,
    ):
        super().__init__(make_runner, config)
        self._plan = self.runner.plan
        self.steps_last_run = self.steps_made = 0
        self._limits = limits
        self.input = SessionInput(deployed_input, lambda: self._limits.interrupted())
        self._reader = VariableReader(self, after_loop=limits.reads_after_loop)
        self._noted_step: Any = None
        self._assignments = 0
        self._known: dict[int, StepFetches] = {}
        self._profiled = ProfiledSteps()

    def start(self, restored: str | None = None) -> None:
        """Also makes the iterator if the input `is_whole`, since hooks may use it."""
        super().start(restored)
        if self.input.deployed_input.is_whole:
            self.iterator()

    def iterator(self) -> Iterator:
        return self.input.iterator()

    def close(self) -> None:
        super().close()
        self._known.clear()
        self.input.close(self._close_steps)
        self.store.drop_resources()

    def _close_steps(self) -> None:
        self.runner.close()
        self._profiled.close()

    def renew_steps(self) -> None:
        super().renew_steps()
        self._known.clear()
        self._reader = VariableReader(self, after_loop=self._limits.reads_after_loop)

    def evaluate_outside(self, fetches: Fetches) -> list[Any]:
        """Values that need no step, from the current variables."""
        return super()._evaluate(fetches, [], [])

    def _evaluate(self, fetches: Fetches, targets: Targets, feeds: Feeds) -> list[Any]:
        asked = self._classified(fetches, targets)
        if feeds or not asked.reads_alone:
            self._noted_step = None
            if not asked.needs_step:
                self.runner.finish_host_calls()
        if not asked.needs_step:
            return super()._evaluate(fetches, targets, feeds)
        self._profiled.before_run(self.global_step)
        before = self.steps_made
        values = self._run_fed(asked, feeds) if feeds else self._run_steps(asked)
        self._profiled.after_run(max(self.steps_made - before, 1))
        return values

    def _classified(self, fetches: Fetches, targets: Targets) -> StepFetches:
        """The fetches and targets, classified; cached for the same objects."""
        known = self._known.get(id(fetches))
        if known is None or known.tensors is not fetches or known.targets is not targets:
            if len(self._known) == _MOST_KNOWN:
                self._known.clear()
            known = StepFetches(self._plan, fetches, targets, self.variable_behind)
            self._known[id(fetches)] = known
        return known

    def global_step(self) -> int:
        """The current global step: as noted by the last run, unless it may have changed since."""
        if self._noted_step is None or self._assignments != self.store.assignments:
            self._note(super().global_step())
        return int(self._noted_step)

    @property
    def data_ended(self) -> bool:
        """Whether steps ended with their data, not because another machine stopped."""
        states = self.runner.states
        return self.input.exhausted and (states is None or State.OUT_OF_DATA in states)

    def _note(self, step: Any) -> None:
        self._noted_step = step
        self._assignments = self.store.assignments

    def _run_steps(self, asked: StepFetches) -> list[Any]:
        # A run that makes no steps goes on, and gets the input's own error.
        if self.runner.ended or (self.input.exhausted and asked.makes_steps):
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        steps = self._limits.steps if asked.makes_steps else 1
        if asked.makes_steps:
            self.runner.begin_loop()
        if asked.in_loop:
            return self._run_reading(asked, steps)
        made = self._run_loop(steps - 1).steps if asked.makes_steps and steps > 1 else 0
        values = self._run_once(asked)
        self.steps_last_run = made + 1 if asked.makes_steps else self.steps_last_run
        self.steps_made += asked.makes_steps
        return values

    def _run_fed(self, asked: StepFetches, feeds: Feeds) -> list[Any]:
        """Runs steps with fed tensors one by one, each with the same values."""
        if not asked.makes_steps:
            return self._run_once(asked, feeds)
        values: list[Any] = []
        self.steps_last_run = 0
        for _ in range(self._limits.steps):
            values = self._run_once(asked, feeds)
            self.steps_last_run += 1
            self.steps_made += 1
        return values

    def _run_once(self, asked: StepFetches, feeds: Feeds = ()) -> list[Any]:
        read = self._reader.before_step(asked)
        apart = read.keys() | asked.variables.keys()
        within = [t for k, t in zip(asked.keys, asked.tensors, strict=True) if k not in apart]
        self._noted_step = None
        found = self.input.take(lambda iterator: self._step(iterator, within, asked.targets, feeds))
        read.update(zip(map(key, within), found, strict=True))
        read.update(self._reader.after_step(asked))
        return [read[k] for k in asked.keys]

    def _step(
        self, iterator: Iterator, fetches: Fetches, targets: Targets, feeds: Feeds
    ) -> list[Any]:
        try:
            return self.runner.run_once(iterator, fetches, targets, feeds)
        except tf.errors.OutOfRangeError:
            eager.forget_end_of_data()
            self.input.exhausted = True
            raise

    def _run_reading(self, asked: StepFetches, steps: int) -> list[Any]:
        if self._reader.after_loop or not asked.variables:
            return self._with_loss(asked, self._run_loop(steps), {})
        if self._reader.counter_alone(asked):
            result = self._run_loop(steps)
            noted = result.steps == steps and result.counter_before is not None
            counter = as_numpy(result.counter_before) if noted else None
            before = dict.fromkeys(asked.variables, counter) if noted else {}
            return self._with_loss(asked, result, before)
        ahead = self._run_loop(steps - 1) if steps > 1 else None
        if ahead is not None and (ahead.steps < steps - 1 or ahead.stopped_by_nan):
            return self._with_loss(asked, ahead, {})
        before = self._reader.plain(asked)
        try:
            result = self._run_loop(1)
        except tf.errors.OutOfRangeError:
            if ahead is None:
                raise
            return self._with_loss(asked, ahead, {})  # the next run raises it again
        self.steps_last_run = (ahead.steps if ahead else 0) + result.steps
        return self._with_loss(asked, result, before)

    def _run_loop(self, steps: int) -> LoopResult:
        result = self.input.take(lambda iterator: self.runner.run(iterator, steps))
        if result.exhausted:
            self.input.exhausted = True
            if not result.steps:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        self.steps_last_run = result.steps
        self.steps_made += result.steps
        self._note(result.counter)
        if not self._limits.host_calls_may_lag:
            self.runner.finish_host_calls()
        return result

    def _with_loss(self, asked: StepFetches, result: LoopResult, read: dict[Key, Any]) -> list[Any]:
        """Values of fetches that depend on the finished steps through the loss alone.

        Variables that were not read before the last step are read here.
        """
        loss = as_numpy(result.loss)
        after = self._reader.after_step(asked) if read else self._reader.plain(asked)
        values = {**read, **after}
        if asked.derived:
            found = self._from_loss(list(asked.derived.values()), loss)
            values |= dict(zip(asked.derived, found, strict=True))
        return [values.get(k, loss) for k in asked.keys]

    def _from_loss(self, fetches: Fetches, loss: np.ndarray) -> list[Any]:
        assert self._plan.loss is not None
        names = (tuple(t.name for t in fetches), (), (self._plan.loss.name,))
        if names not in self._functions:
            feeds = [self._plan.loss]
            self._functions[names] = HostFunction(self.graph, self.store, fetches, [], feeds)
        return self._functions[names]([loss])

    def can_collect(self, fetches: Fetches) -> bool:
        """Whether `collect` can serve `fetches`: not with computed input."""
        if self.input.deployed_input.computed:
            return False
        return self.runner.can_collect(fetches)

    def collect(self, fetches: Fetches, most: int) -> list[list[np.ndarray]]:
        self._profiled.before_run(self.global_step)
        with with_lines(self.graph):
            found = self.input.take(lambda iterator: self.runner.collect(iterator, fetches, most))
        self._profiled.after_run(len(found))
        return found
