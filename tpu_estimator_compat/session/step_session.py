"""The session of a mode: makes steps when a fetch needs them, and does the host's work otherwise.

`run` is what TF's MonitoredSession and its hooks call. Where the plan's targets are among what is
asked for, it makes as many steps as the cadence says; fetches that only hooks ask for are evaluated
with the last of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.checkpoint import input_state
from tpu_estimator_compat.inputs import DeployedInput, Disposal
from tpu_estimator_compat.loop.result import LoopResult
from tpu_estimator_compat.program import graph_ops
from tpu_estimator_compat.program.graph_ops import Key, key
from tpu_estimator_compat.program.session import GraphSession, HostFunction, Names, as_numpy
from tpu_estimator_compat.session.cadence import Cadence
from tpu_estimator_compat.session.runner import Runner

Fetches = Sequence[tf.Tensor]
Targets = Sequence[tf.Operation]


class StepSession(GraphSession):
    """A session whose steps take their input from a deployed input.

    Args:
      runner: makes the steps.
      deployed: the input; one iterator of it is made here.
      cadence: how the outer loop breaks up the steps; it is read at every run.

    Attributes:
      runner: the same.
      steps_last_run: how many steps the last `run` of the plan's targets made.
      input_stands_at: the checkpoint whose input position this session's input was moved to, until
        a step takes an element.
    """

    def __init__(self, runner: Runner, deployed: DeployedInput, cadence: Cadence):
        self.runner, self._plan = runner, runner.plan
        super().__init__(self._plan.graph, runner.store)
        self.steps_last_run = 0
        self.input_stands_at: str | None = None
        self._cadence = cadence
        # A prediction is made for each fetch by itself: no run of it makes many.
        targets = [] if self._plan.loss is None else self._plan.targets
        self._target_names = {op.name for op in targets}
        self._input = deployed
        self._iterator: Iterator | None = None
        self._exhausted = False
        self._noted_step: tf.Tensor | None = None
        self._assignments = 0
        self._fetched_in_step: dict[Names, bool] = {}
        self._of_variables: dict[Key, bool] = {}

    def start(self) -> None:
        """Called when all variables have their first values, before any step."""
        self.runner.start()

    def close(self) -> None:
        """Frees the input and the steps, and writes the events that wait.

        The input is freed on purpose, not by whatever garbage collection comes along: its
        destructor may take its time (see `Disposal`).
        """
        super().close()
        disposal = Disposal(self._iterator) if self._iterator is not None else None
        self._iterator = None
        self.runner.close()
        if disposal:
            disposal.drop()

    def _evaluate(
        self, fetches: Fetches, targets: Targets, feeds: Sequence[tuple[tf.Tensor, np.ndarray]]
    ) -> list[Any]:
        self._noted_step = None
        # A step is a step, and takes its element, even where nothing in it looks at the input.
        step = self._asks_for_steps(targets)
        if not step and not any(map(self._plan.needs_step, [*(t.op for t in fetches), *targets])):
            if targets or feeds or any(self.variable_behind(t) is None for t in fetches):
                self.runner.finish_host_calls()
            return super()._evaluate(fetches, targets, feeds)
        if feeds:
            return self._run_fed(fetches, targets, feeds)
        return self._run_steps(fetches, targets)

    def global_step(self) -> int:
        """The current global step, as the last run noted it unless it may have changed since."""
        if self._noted_step is None or self._assignments != self.store.assignments:
            return super().global_step()
        return int(self._noted_step)

    def _asks_for_steps(self, targets: Targets) -> bool:
        """Whether the plan's targets are among `targets`."""
        return bool(self._target_names) and self._target_names <= {op.name for op in targets}

    def _run_steps(self, fetches: Fetches, targets: Targets) -> list[Any]:
        if self._exhausted or self.runner.ended:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        main = self._asks_for_steps(targets)
        steps = self._cadence.steps if main else 1
        if main:
            self.runner.begin_loop()
        others = {op.name for op in targets} - self._target_names
        besides = [t for t in fetches if not self._plan.is_loss(t)]
        if main and self._plan.loss is not None and not others and not self._in_step(besides):
            return self._run_reading(fetches, besides, steps)
        made = self._run_loop(steps - 1).steps if main and steps > 1 else 0
        # A hook that gets control around every step reads what variables were before it, as TF1's
        # reads without dependencies did.
        read = self._before_step(fetches)
        within = [t for t in fetches if key(t) not in read]
        read.update(zip(map(key, within), self._run_once(within, targets), strict=True))
        self.steps_last_run = made + 1 if main else self.steps_last_run
        return [read[key(t)] for t in fetches]

    def _run_fed(
        self, fetches: Fetches, targets: Targets, feeds: Sequence[tuple[tf.Tensor, np.ndarray]]
    ) -> list[Any]:
        """Runs steps in which a hook feeds tensors, one by one, each with the same values."""
        read: dict[Key, Any] = {}
        self.steps_last_run = 0
        for _ in range(self._cadence.steps if self._asks_for_steps(targets) else 1):
            read = self._before_step(fetches)
            within = [t for t in fetches if key(t) not in read]
            found = self._run_once(within, targets, feeds)
            read.update(zip(map(key, within), found, strict=True))
            self.steps_last_run += 1
        return [read[key(t)] for t in fetches]

    def _run_once(
        self,
        fetches: Fetches,
        targets: Targets,
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> list[Any]:
        self.input_stands_at = self._noted_step = None
        return self.runner.run_once(self.iterator(), fetches, targets, feeds)

    def _run_reading(self, fetches: Fetches, besides: Fetches, steps: int) -> list[Any]:
        """Runs steps; reads variables of `besides` before the last, or after a loop of TPUs."""
        reads = any(self.variable_behind(t) is not None for t in besides)
        before_last = self._cadence.reads_before_last_step
        if reads and before_last and self._reads_counter_alone(besides):
            result = self._run_loop(steps)
            return self._with_loss(fetches, result, self._counter_before(besides, result, steps))
        if reads and steps > 1 and before_last:
            ahead = self._run_loop(steps - 1)
            if ahead.steps < steps - 1 or ahead.stopped_by_nan:
                return self._with_loss(fetches, ahead, {})
            before = self._plain_reads(besides)
            try:
                result = self._run_loop(1)
            except tf.errors.OutOfRangeError:  # raised again by the next run
                return self._with_loss(fetches, ahead, {})
            self.steps_last_run = ahead.steps + result.steps
            return self._with_loss(fetches, result, before)
        # Otherwise after a loop, also one of a single step: two loops never show the same step.
        before = self._plain_reads(besides) if before_last else {}
        return self._with_loss(fetches, self._run_loop(steps), before)

    def _reads_counter_alone(self, fetches: Fetches) -> bool:
        """Whether the runner itself notes all that is to be read before its last step."""
        counter = self.global_step_variable()
        read = [self.variable_behind(t) for t in fetches]
        return self.runner.notes_before and all(v is None or v is counter for v in read)

    def _counter_before(self, fetches: Fetches, result: LoopResult, steps: int) -> dict[Key, Any]:
        """What the runner has noted; nothing where it ended early, in whatever step."""
        if result.steps < steps or result.counter_before is None:
            return {}
        before = as_numpy(result.counter_before)
        return {key(t): before for t in fetches if self.variable_behind(t) is not None}

    def _in_step(self, fetches: Fetches) -> bool:
        """Whether any of `fetches` needs more of the step than its loss."""
        assert self._plan.loss is not None
        names = tuple(t.name for t in fetches)
        if names not in self._fetched_in_step:
            derived = [t.op for t in fetches if self.variable_behind(t) is None]
            needed = graph_ops.ancestors(derived, {key(self._plan.loss)})
            roots = {t.op.name for t in self._plan.replica_feeds} | self._plan.replica_ops
            roots |= {name for name, _ in self._plan.host_placeholders}
            self._fetched_in_step[names] = any(
                # What is computed from variables is, too: the step changes them.
                op.name in roots or graph_ops.is_variable_handle(op)
                for op in needed
            )
        return self._fetched_in_step[names]

    def _before_step(self, fetches: Fetches) -> dict[Key, Any]:
        """Values of those fetches that look at nothing but variables, such as a summary of one."""
        read = self._plain_reads(fetches)
        if not self._cadence.reads_before_last_step:
            return read
        alone = [t for t in fetches if key(t) not in read and self._looks_at_variables_alone(t)]
        if alone:
            read.update(zip(map(key, alone), super()._evaluate(alone, [], []), strict=True))
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

    def _plain_reads(self, fetches: Fetches) -> dict[Key, Any]:
        return {
            key(t): self._direct_read(t) for t in fetches if self.variable_behind(t) is not None
        }

    def _direct_read(self, tensor: tf.Tensor) -> Any:
        variable = self.variable_behind(tensor)
        if variable is not None:
            self.runner.finish_host_calls(using=variable.name[:-2])
        return super()._direct_read(tensor)

    def _with_loss(self, fetches: Fetches, result: LoopResult, read: dict[Key, Any]) -> list[Any]:
        """Values of fetches that depend on the finished steps through the loss alone."""
        loss, is_loss = as_numpy(result.loss), self._plan.is_loss
        values = dict(read)
        rest = [t for t in fetches if not is_loss(t) and key(t) not in values]
        values.update(self._plain_reads(rest))
        if derived := [t for t in rest if key(t) not in values]:
            values.update(zip(map(key, derived), self._from_loss(derived, loss), strict=True))
        return [loss if is_loss(t) else values[key(t)] for t in fetches]

    def _from_loss(self, fetches: Fetches, loss: np.ndarray) -> list[Any]:
        assert self._plan.loss is not None
        names = (tuple(t.name for t in fetches), (), (self._plan.loss.name,))
        if names not in self._functions:
            feeds = [self._plan.loss]
            self._functions[names] = HostFunction(self.graph, self.store, fetches, [], feeds)
        return self._functions[names]([loss])

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
        """Whether `collect` can serve `fetches`."""
        return self._input.reads_ahead and self.runner.can_collect(fetches)

    def collect(self, fetches: Fetches, most: int) -> list[list[np.ndarray]]:
        """Evaluates `fetches` for up to `most` input elements: see `Runner.collect`."""
        return self.runner.collect(self.iterator(), fetches, most)

    def _run_loop(self, steps: int) -> LoopResult:
        self.input_stands_at = None
        result = self.runner.run(self.iterator(), steps)
        if result.exhausted:
            self._exhausted = True
            if not result.steps:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        self.steps_last_run = result.steps
        self._noted_step = result.counter
        self._assignments = self.store.assignments
        if not self._cadence.host_calls_may_lag:
            self.runner.finish_host_calls()
        return result
