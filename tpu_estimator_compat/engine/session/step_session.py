"""The session of a mode: makes steps when a fetch needs them, and does the host's work otherwise.

`run` is what TF's MonitoredSession and its hooks call. Where the plan's targets are among what is
asked for, it makes as many steps as the cadence says; fetches that only hooks ask for are evaluated
with the last of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint import input_state
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.graph.sources import with_lines
from tpu_estimator_compat.engine.inputs import DeployedInput, Disposal
from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.runtime.aside import Aside, StillBlockedError
from tpu_estimator_compat.engine.runtime.workers import State
from tpu_estimator_compat.engine.session.cadence import Cadence
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.session.profiled_steps import ProfiledSteps
from tpu_estimator_compat.engine.session.runner import Runner
from tpu_estimator_compat.engine.session.step_fetches import StepFetches
from tpu_estimator_compat.engine.step.host_function import HostFunction, as_numpy

Fetches = Sequence[tf.Tensor]
Targets = Sequence[tf.Operation]
Result = TypeVar("Result")
_MOST_KNOWN = 64  # sets of fetches that are kept sorted


class StepSession(GraphSession):
    """A session whose steps take their input from a deployed input.

    Args:
      runner: makes the steps.
      deployed: the input; one iterator of it is made here.
      cadence: the outer loop's division of the steps; it is read at every run.

    Attributes:
      runner: the same.
      steps_last_run: the number of steps of the last `run` of the plan's targets.
      steps_made: the number of steps of all runs of them.
      input_stands_at: the checkpoint whose input position this session's input was moved to, until
        a step takes an element.
    """

    def __init__(self, runner: Runner, deployed: DeployedInput, cadence: Cadence):
        self.runner, self._plan = runner, runner.plan
        super().__init__(self._plan.graph, runner.store)
        self.steps_last_run = self.steps_made = 0
        self.input_stands_at: str | None = None
        self._cadence = cadence
        self._input = deployed
        self._iterator: Iterator | None = None
        self._exhausted = False
        self._aside = Aside(lambda: self._cadence.interrupted()) if deployed.runs_python else None
        self._noted_step: Any = None
        self._assignments = 0
        self._known: dict[int, StepFetches] = {}
        self._profiled = ProfiledSteps()
        self._of_variables: dict[Key, bool] = {}

    def start(self, restored: str | None = None) -> None:
        """See `GraphSession`. An iterator of the graph is ready before a hook looks at it."""
        self.runner.start(restored)
        if self._input.is_whole:
            self.iterator()

    def close(self) -> None:
        """Frees the input and the steps, and writes the events that wait.

        The input is freed on purpose, not by whatever garbage collection comes along: its
        destructor may take its time (see `Disposal`).
        """
        super().close()
        self._known.clear()
        disposal = Disposal(self._iterator) if self._iterator is not None else None
        self._iterator = None
        if self._aside is not None:
            self._aside.close()
        self.runner.close()
        self._profiled.close()
        # A signal ends the process, for which Python code that blocks the input would not.
        told = self._cadence.interrupted() or sys.exc_info()[0] is KeyboardInterrupt
        hurried = self._aside is not None and told
        if disposal:
            disposal.drop(hurried=hurried)
        self._input.close(hurried=hurried)
        self.store.drop_resources()

    def _evaluate(
        self, fetches: Fetches, targets: Targets, feeds: Sequence[tuple[tf.Tensor, np.ndarray]]
    ) -> list[Any]:
        asked = self._sorted(fetches, targets)
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

    def _sorted(self, fetches: Fetches, targets: Targets) -> StepFetches:
        """The same fetches, sorted; kept for those that come again."""
        known = self._known.get(id(fetches))
        if known is None or known.tensors is not fetches or known.targets is not targets:
            if len(self._known) == _MOST_KNOWN:
                self._known.clear()
            known = StepFetches(self._plan, fetches, targets, self.variable_behind)
            self._known[id(fetches)] = known
        return known

    def global_step(self) -> int:
        """The current global step, as the last run noted it unless it may have changed since."""
        if self._noted_step is None or self._assignments != self.store.assignments:
            self._note(super().global_step())
        return int(self._noted_step)

    @property
    def data_ended(self) -> bool:
        """Whether steps ended with their data, and not because another machine stopped."""
        states = getattr(self.runner, "states", None)
        return self._exhausted and (states is None or State.OUT_OF_DATA in states)

    def _note(self, step: Any) -> None:
        """Takes note of the global step; None where it is not known."""
        self._noted_step = step
        self._assignments = self.store.assignments

    def _run_steps(self, asked: StepFetches) -> list[Any]:
        if self._exhausted or self.runner.ended:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        steps = self._cadence.steps if asked.makes_steps else 1
        if asked.makes_steps:
            self.runner.begin_loop()
        if asked.in_loop:
            return self._run_reading(asked, steps)
        made = self._run_loop(steps - 1).steps if asked.makes_steps and steps > 1 else 0
        values = self._run_once(asked)
        self.steps_last_run = made + 1 if asked.makes_steps else self.steps_last_run
        self.steps_made += asked.makes_steps
        return values

    def _run_fed(
        self, asked: StepFetches, feeds: Sequence[tuple[tf.Tensor, np.ndarray]]
    ) -> list[Any]:
        """Runs steps in which a hook feeds tensors, one by one, each with the same values."""
        values: list[Any] = []
        self.steps_last_run = 0
        for _ in range(self._cadence.steps if asked.makes_steps else 1):
            values = self._run_once(asked, feeds)
            self.steps_last_run += 1
            self.steps_made += asked.makes_steps
        return values

    def _run_once(
        self, asked: StepFetches, feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = ()
    ) -> list[Any]:
        """Runs one step that computes all that is asked for."""
        # A hook that gets control around every step reads what variables were before it, as TF1's
        # reads without dependencies did.
        read = self._before_step(asked)
        apart = read.keys() | asked.variables.keys()
        within = [t for k, t in zip(asked.keys, asked.tensors, strict=True) if k not in apart]
        self.input_stands_at = self._noted_step = None
        found = self._waiting(lambda: self._step(within, asked.targets, feeds))
        read.update(zip(map(key, within), found, strict=True))
        read.update(self._reads_after(asked))
        return [read[k] for k in asked.keys]

    def _step(
        self, fetches: Fetches, targets: Targets, feeds: Sequence[tuple[tf.Tensor, np.ndarray]]
    ) -> list[Any]:
        try:
            return self.runner.run_once(self.iterator(), fetches, targets, feeds)
        except tf.errors.OutOfRangeError:
            self._exhausted = True
            raise

    def _run_reading(self, asked: StepFetches, steps: int) -> list[Any]:
        """Runs steps; reads variables before the last of them, or after a loop of TPUs."""
        before_last = self._cadence.reads_before_last_step
        if asked.variables and before_last and self._reads_counter_alone(asked):
            result = self._run_loop(steps)
            return self._with_loss(asked, result, self._counter_before(asked, result, steps))
        if asked.variables and steps > 1 and before_last:
            ahead = self._run_loop(steps - 1)
            if ahead.steps < steps - 1 or ahead.stopped_by_nan:
                return self._with_loss(asked, ahead, {})
            before = self._plain_reads(asked)
            try:
                result = self._run_loop(1)
            except tf.errors.OutOfRangeError:  # raised again by the next run
                return self._with_loss(asked, ahead, {})
            self.steps_last_run = ahead.steps + result.steps
            return self._with_loss(asked, result, before)
        # Otherwise after a loop, also one of a single step: two loops never show the same step.
        before = self._plain_reads(asked) if before_last else {}
        return self._with_loss(asked, self._run_loop(steps), before)

    def _reads_counter_alone(self, asked: StepFetches) -> bool:
        """Whether the runner itself notes all that is to be read before its last step."""
        counter = self.global_step_variable()
        return self.runner.notes_before and all(
            self.variable_behind(t) is counter for t in asked.variables.values()
        )

    def _counter_before(self, asked: StepFetches, result: LoopResult, steps: int) -> dict[Key, Any]:
        """The counter before the last step, as the runner noted it; empty where it ended early."""
        if result.steps < steps or result.counter_before is None:
            return {}
        return dict.fromkeys(asked.variables, as_numpy(result.counter_before))

    def _before_step(self, asked: StepFetches) -> dict[Key, Any]:
        """Values of those fetches that look at nothing but variables, such as a summary of one.

        With loops of TPUs there are none: the original read all after a loop.
        """
        before = self._cadence.reads_before_last_step
        read = self._plain_reads(asked) if before else {}
        if not (before or self._cadence.reads_after_step):
            return read
        alone = {
            k: t
            for k, t in zip(asked.keys, asked.tensors, strict=True)
            if k not in asked.variables and self._looks_at_variables_alone(t)
        }
        if alone:
            read.update(zip(alone, super()._evaluate(list(alone.values()), [], []), strict=True))
        return read

    def _looks_at_variables_alone(self, tensor: tf.Tensor) -> bool:
        k = key(tensor)
        if k not in self._of_variables:
            ops = graph_ops.ancestors([tensor.op], ())
            reads = {op.type for op in ops if graph_ops.is_variable_handle(op)} | {"ReadVariableOp"}
            self._of_variables[k] = len(reads) > 1 and not any(
                (op.op_def.is_stateful and op.type not in reads)
                or op.type.startswith("Placeholder")
                or self._plan.needs_step(op)
                for op in ops
            )
        return self._of_variables[k]

    def _plain_reads(self, asked: StepFetches) -> dict[Key, Any]:
        return {k: self._direct_read(t) for k, t in asked.variables.items()}

    def _reads_after(self, asked: StepFetches) -> dict[Key, Any]:
        """Values of variables that are read after a step: all after a loop of TPUs.

        Else those of ref variables; TF's hooks fetch a copy of the step's, made before the step.
        """
        if not self._cadence.reads_before_last_step:
            return self._plain_reads(asked)
        if not self._cadence.reads_after_step:
            return {}
        direct = {k: t for k, t in asked.variables.items() if not self.is_step_of_hooks(t)}
        return {k: self._direct_read(t) for k, t in direct.items()}

    def _direct_read(self, tensor: tf.Tensor) -> Any:
        variable = self.variable_behind(tensor)
        if variable is not None:
            self.runner.finish_host_calls(using=variable.name[:-2])
        return super()._direct_read(tensor)

    def _with_loss(self, asked: StepFetches, result: LoopResult, read: dict[Key, Any]) -> list[Any]:
        """Values of fetches that depend on the finished steps through the loss alone."""
        loss = as_numpy(result.loss)
        values = {**read, **self._reads_after(asked)} if read else self._plain_reads(asked)
        if asked.derived:
            found = self._from_loss(list(asked.derived.values()), loss)
            values = {**values, **dict(zip(asked.derived, found, strict=True))}
        return [values.get(k, loss) for k in asked.keys]

    def _from_loss(self, fetches: Fetches, loss: np.ndarray) -> list[Any]:
        assert self._plan.loss is not None
        names = (tuple(t.name for t in fetches), (), (self._plan.loss.name,))
        if names not in self._functions:
            feeds = [self._plan.loss]
            self._functions[names] = HostFunction(self.graph, self.store, fetches, [], feeds)
        return self._functions[names]([loss])

    @property
    def element_spec(self) -> Any:
        """The structure of `tf.TypeSpec`s of one replica's input."""
        return self._input.element_spec

    def iterator(self) -> Iterator:
        """The iterator that the steps take their input from."""
        if self._iterator is None:
            self._iterator = iter(self._input)
        return self._iterator

    def restore_input(self, path: str) -> bool:
        """Moves the input to where it stood at the checkpoint `path`, if that is known."""
        found = input_state.restore(self.iterator(), path)
        self.input_stands_at = path if found else None
        return found

    def can_collect(self, fetches: Fetches) -> bool:
        """Whether `collect` can serve `fetches`: elements come from datasets alone."""
        return not self._input.computed and self.runner.can_collect(fetches)

    @property
    def reads_ahead(self) -> bool:
        """Whether elements may be read before they are needed: see `DeployedInput`."""
        return self._input.reads_ahead

    def collect(self, fetches: Fetches, most: int) -> list[list[np.ndarray]]:
        """Evaluates `fetches` for up to `most` input elements: see `Runner.collect`."""
        self._profiled.before_run(self.global_step)
        with with_lines(self.graph):
            found = self._waiting(lambda: self.runner.collect(self.iterator(), fetches, most))
        self._profiled.after_run(len(found))
        return found

    def finish_host_calls(self) -> None:
        """See `Runner`."""
        with with_lines(self.graph):
            self.runner.finish_host_calls()

    def _waiting(self, call: Callable[[], Result]) -> Result:
        """Makes a call that takes elements; where Python makes them, they may never come.

        Raises:
          tf.errors.OutOfRangeError: it is given up, since training is to stop: as at the end of the
            data, the steps that are made are saved.
        """
        if self._aside is None:
            return call()
        try:
            return self._aside(call)
        except StillBlockedError as error:
            logging.warning("%s Training stops without it.", error)
            raise tf.errors.OutOfRangeError(None, None, str(error)) from None

    def _run_loop(self, steps: int) -> LoopResult:
        self.input_stands_at = None
        result = self._waiting(lambda: self.runner.run(self.iterator(), steps))
        if result.exhausted:
            self._exhausted = True
            if not result.steps:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        self.steps_last_run = result.steps
        self.steps_made += result.steps
        self._note(result.counter)
        if not self._cadence.host_calls_may_lag:
            self.runner.finish_host_calls()
        return result
