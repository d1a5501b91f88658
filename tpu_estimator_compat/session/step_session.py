"""The session of a mode: runs steps on the replicas when a fetch needs input, host work otherwise.

`run` is what TF's MonitoredSession and its hooks call. Where the caller's main targets are among
what is asked for, it runs `steps_per_run` steps in the inner loop; fetches that only hooks ask for
are evaluated with the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.inputs import DeployedInput, Disposal
from tpu_estimator_compat.loop.collect_loop import CollectLoop
from tpu_estimator_compat.loop.device_loop import DeviceLoop
from tpu_estimator_compat.loop.result import LoopResult
from tpu_estimator_compat.program import graph_ops
from tpu_estimator_compat.program.capture import CapturedGraph
from tpu_estimator_compat.program.graph_ops import Key, key
from tpu_estimator_compat.program.session import GraphSession, HostFunction, Names, as_numpy
from tpu_estimator_compat.program.step_program import StepProgram
from tpu_estimator_compat.program.variables import VariableStore
from tpu_estimator_compat.runtime import eager, functions
from tpu_estimator_compat.runtime.tuning import DEFAULTS, Tuning


class StepSession(GraphSession):
    """A session whose steps take their input from a feed.

    Args:
      captured: the captured graph of the mode.
      store: its live variables.
      feed: the input; one iterator of it is made here.
      loss: the step's loss; averaged over replicas. None where a mode has none.
      targets: the operations that make a step: train_op, or metric updates.
      fetches: what every run of a mode without such targets fetches: predictions.
      stop_on_nan: see `DeviceLoop`.
      jit_compile: compile steps that fetch nothing but the loss with XLA.
      tuning: see `DeviceLoop`.

    Attributes:
      steps_per_run: steps of the next `run` that asks for the main targets.
      steps_last_run: how many steps the last such `run` made.
      reads_before_last_step: whether variables that a run of many steps fetches are read before its
        last step, as by a hook that has control around every step, or after all of them.
      input_stands_at: the checkpoint whose input position this session's input was moved to, until
        a step takes an element.
      interrupted: asked within long runs whether to end them early.
      host_calls_may_lag: whether host calls may still be made when a run returns.
    """

    def __init__(
        self,
        captured: CapturedGraph,
        store: VariableStore,
        feed: DeployedInput,
        *,
        loss: Any,
        targets: Sequence[tf.Operation] = (),
        fetches: Sequence[tf.Tensor | tf.Operation] = (),
        stop_on_nan: bool = False,
        jit_compile: bool = False,
        tuning: Tuning = DEFAULTS,
    ):
        super().__init__(captured.graph, store)
        self.captured = captured
        self.steps_per_run = 1
        self.steps_last_run = 0
        self.reads_before_last_step = False
        self.input_stands_at: str | None = None
        self.interrupted: Callable[[], bool] = lambda: False
        self.host_calls_may_lag = False
        self._loss = loss
        self._targets = list(targets)
        self._target_names = {op.name for op in targets}
        self._stop_on_nan = stop_on_nan
        self._jit_compile = jit_compile
        self._tuning = tuning
        self._feed = feed
        self._iterator: Iterator | None = None
        self._exhausted = False
        self._noted_step: tf.Tensor | None = None
        self._assignments = 0
        self._loop: DeviceLoop | None = None
        self._collect: CollectLoop | None = None
        self._fetched_in_step: dict[Names, bool] = {}
        self._of_variables: dict[Key, bool] = {}
        self._single: dict[tuple[Names, ...], Any] = {}
        # Made at once: it creates the variables that steps use, one component per replica, before
        # an initialiser or a restore looks for them.
        if targets:
            fetches = [] if loss is None else [loss]
            self._program = self._step_program(fetches, self._targets, queued=loss is not None)
        else:
            operations = [f for f in fetches if isinstance(f, tf.Operation)]
            tensors = [f for f in fetches if not isinstance(f, tf.Operation)]
            self._program = self._step_program(tensors, operations)

    def continue_run(self, before: StepSession) -> None:
        """Takes over what was planned for a run of `before`, which broke."""
        self.steps_per_run = before.steps_per_run
        self.reads_before_last_step = before.reads_before_last_step
        self.host_calls_may_lag = before.host_calls_may_lag

    def close(self) -> None:
        """Frees the input and the steps, and writes the events that wait.

        The input is freed on purpose, not by whatever garbage collection comes along: its
        destructor may take its time (see `Disposal`).
        """
        super().close()
        if queue := self._program.queue:
            queue.close()
        self.store.flush_summaries()
        disposal = Disposal(self._iterator) if self._iterator is not None else None
        self._iterator = self._loop = self._collect = None
        self._single.clear()
        if disposal:
            disposal.drop()

    def _step_program(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        jit: bool = True,
        fed: Sequence[tf.Tensor] = (),
        queued: bool = False,
    ) -> StepProgram:
        return StepProgram(
            self.captured,
            self.store,
            fetches,
            targets,
            mean=[] if self._loss is None else [self._loss],
            jit_compile=jit and self._jit_compile,
            fed=fed,
            queued=queued,
            tuning=self._tuning,
        )

    def finish_host_calls(self) -> None:
        """Waits until the host calls of all steps are made.

        Raises:
          tf.errors.OpError: what a call raised.
        """
        if self._program.queue is not None:
            self._program.queue.finish()

    def _evaluate(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]],
    ) -> list[Any]:
        self._noted_step = None
        # A step is a step, and takes its element, even where nothing in it looks at the input.
        step = self._asks_for_steps(targets)
        if not step and not any(self._needs_input(op) for op in self._ops(fetches, targets)):
            if targets or feeds or any(self.variable_behind(t) is None for t in fetches):
                self.finish_host_calls()
            return super()._evaluate(fetches, targets, feeds)
        if feeds:
            return self._run_fed(fetches, targets, feeds)
        return self._run_steps(fetches, targets)

    def global_step(self) -> int:
        """The current global step, as the last run noted it unless it may have changed since."""
        if self._noted_step is None or self._assignments != self.store.assignments:
            return super().global_step()
        return int(self._noted_step)

    @staticmethod
    def _ops(fetches: Sequence[tf.Tensor], targets: Sequence[tf.Operation]) -> list[tf.Operation]:
        return [*(t.op for t in fetches), *targets]

    def _needs_input(self, op: tf.Operation) -> bool:
        captured = self.captured
        return (
            op.name in captured.replica_ops
            or op.name in captured.depends_on_input()
            or op.name in captured.depends_on_host_placeholders()
        )

    def _asks_for_steps(self, targets: Sequence[tf.Operation]) -> bool:
        """Whether the caller's main targets are among `targets`."""
        return bool(self._target_names) and self._target_names <= {op.name for op in targets}

    def _run_steps(
        self, fetches: Sequence[tf.Tensor], targets: Sequence[tf.Operation]
    ) -> list[Any]:
        if self._exhausted:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        main = self._asks_for_steps(targets)
        steps = self.steps_per_run if main else 1
        if main:
            self.captured.begin_loop()
        others = {op.name for op in targets} - self._target_names
        late = [t for t in fetches if not self._is_loss(t)]
        if main and self._loss is not None and not others and not self._in_step(late):
            return self._run_reading(fetches, late, steps)
        made = self._run_loop(steps - 1).steps if main and steps > 1 else 0
        # A hook that gets control around every step reads what variables were before it, as TF1's
        # reads without dependencies did.
        read = self._before_step(fetches)
        within = [t for t in fetches if key(t) not in read]
        read.update(zip(map(key, within), self._run_single(within, targets), strict=True))
        self.steps_last_run = made + 1 if main else self.steps_last_run
        return [read[key(t)] for t in fetches]

    def _run_fed(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]],
    ) -> list[Any]:
        """Runs steps in which a hook feeds tensors, one by one, each with the same values."""
        main = self._asks_for_steps(targets)
        fed = [tensor for tensor, _ in feeds]
        values = [value for _, value in feeds]
        read: dict[Key, Any] = {}
        self.steps_last_run = 0
        for _ in range(self.steps_per_run if main else 1):
            read = self._before_step(fetches)
            within = [t for t in fetches if key(t) not in read]
            found = self._run_single(within, targets, fed, values)
            read.update(zip(map(key, within), found, strict=True))
            self.steps_last_run += 1
        return [read[key(t)] for t in fetches]

    def _run_reading(
        self, fetches: Sequence[tf.Tensor], late: Sequence[tf.Tensor], steps: int
    ) -> list[Any]:
        """Runs steps; reads variables of `late` before the last of them, or after a TPU's loop."""
        reads = any(self.variable_behind(t) is not None for t in late)
        if reads and self.reads_before_last_step and self._reads_counter_alone(late):
            result = self._run_loop(steps)
            return self._with_loss(fetches, result, self._counter_before(late, result, steps))
        if reads and steps > 1 and self.reads_before_last_step:
            ahead = self._run_loop(steps - 1)
            if ahead.steps < steps - 1 or ahead.stopped_by_nan:
                return self._with_loss(fetches, ahead, {})
            before = self._plain_reads(late)
            try:
                result = self._run_loop(1)
            except tf.errors.OutOfRangeError:  # raised again by the next run
                return self._with_loss(fetches, ahead, {})
            self.steps_last_run = ahead.steps + result.steps
            return self._with_loss(fetches, result, before)
        # Otherwise after a loop, also one of a single step: two loops never show the same step.
        before = self._plain_reads(late) if self.reads_before_last_step else {}
        return self._with_loss(fetches, self._run_loop(steps), before)

    def _reads_counter_alone(self, late: Sequence[tf.Tensor]) -> bool:
        """Whether the loop itself notes all that is to be read before its last step."""
        loop = self._the_loop()
        behind = [self.variable_behind(t) for t in late]
        return loop.notes_before and all(v is None or v is loop.counter for v in behind)

    def _counter_before(
        self, late: Sequence[tf.Tensor], result: LoopResult, steps: int
    ) -> dict[Key, Any]:
        """What the loop has noted; nothing where it ended early, in whatever step."""
        if result.steps < steps or result.counter_before is None:
            return {}
        before = as_numpy(result.counter_before)
        return {key(t): before for t in late if self.variable_behind(t) is not None}

    def _is_loss(self, tensor: tf.Tensor) -> bool:
        return self._loss is not None and key(tensor) == key(self._loss)

    def _in_step(self, fetches: Sequence[tf.Tensor]) -> bool:
        """Whether any of `fetches` needs more of the step than its loss."""
        names = tuple(t.name for t in fetches)
        if names not in self._fetched_in_step:
            derived = [t.op for t in fetches if self.variable_behind(t) is None]
            needed = graph_ops.ancestors(derived, {key(self._loss)})
            roots = {t.op.name for t in self.captured.feeds} | self.captured.replica_ops
            roots |= {name for name, _ in self.captured.host_placeholders}
            self._fetched_in_step[names] = any(
                # What is computed from variables is, too: the step changes them.
                op.name in roots or graph_ops.is_variable_handle(op)
                for op in needed
            )
        return self._fetched_in_step[names]

    def _before_step(self, fetches: Sequence[tf.Tensor]) -> dict[Key, Any]:
        """Values of those fetches that look at nothing but variables, such as a summary of one."""
        read = self._plain_reads(fetches)
        if not self.reads_before_last_step:
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
                or self._needs_input(op)
                for op in ops
            )
        return self._of_variables[k]

    def _plain_reads(self, fetches: Sequence[tf.Tensor]) -> dict[Key, Any]:
        return {
            key(t): self._direct_read(t) for t in fetches if self.variable_behind(t) is not None
        }

    def _direct_read(self, tensor: tf.Tensor) -> Any:
        queue, variable = self._program.queue, self.variable_behind(tensor)
        if queue and variable is not None and queue.uses(variable.name[:-2]):
            queue.finish()
        return super()._direct_read(tensor)

    def _with_loss(
        self, fetches: Sequence[tf.Tensor], result: LoopResult, read: dict[Key, Any]
    ) -> list[Any]:
        """Values of fetches that depend on the finished steps through the loss alone."""
        loss = as_numpy(result.loss)
        values = dict(read)
        rest = [t for t in fetches if not self._is_loss(t) and key(t) not in values]
        values.update(self._plain_reads(rest))
        if derived := [t for t in rest if key(t) not in values]:
            values.update(zip(map(key, derived), self._from_loss(derived, loss), strict=True))
        return [loss if self._is_loss(t) else values[key(t)] for t in fetches]

    def _from_loss(self, fetches: Sequence[tf.Tensor], loss: np.ndarray) -> list[Any]:
        names = (tuple(t.name for t in fetches), (), (self._loss.name,))
        if names not in self._functions:
            self._functions[names] = HostFunction(self.graph, self.store, fetches, [], [self._loss])
        return self._functions[names]([loss])

    def iterator(self) -> Iterator:
        """The iterator that the steps take their input from."""
        if self._iterator is None:
            self._iterator = iter(self._feed)
        return self._iterator

    def can_collect(self, fetches: Sequence[tf.Tensor]) -> bool:
        """Whether `collect` can serve `fetches`."""
        ranks = [t.shape.rank for t in fetches]
        one = self.store.strategy.num_replicas_in_sync == 1
        return one and self._feed.reads_ahead and all(ranks)

    def collect(self, fetches: Sequence[tf.Tensor], most: int) -> list[list[np.ndarray]]:
        """Evaluates `fetches` for up to `most` input elements in one call.

        Args:
          fetches: tensors of this graph, the same in every call, each with a batch dimension.
          most: how many elements.

        Returns:
          One list of values per element; fewer than `most` at the end of the data.
        """
        if self._collect is None:
            program = self._program  # made for the same fetches, where a session predicts
            if list(map(key, program.fetches)) != list(map(key, fetches)):
                program = self._step_program(fetches, [], jit=False)
            self._collect = CollectLoop(program, [(t.dtype, t.shape.rank) for t in fetches])
        return self._collect(self.iterator(), most)

    def _run_loop(self, steps: int) -> LoopResult:
        self.input_stands_at = None
        result = self._the_loop()(self.iterator(), steps)
        if result.exhausted:
            self._exhausted = True
            if not result.steps:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        self.steps_last_run = result.steps
        self._noted_step = result.counter
        self._assignments = self.store.assignments
        if not self.host_calls_may_lag:
            self.finish_host_calls()
        return result

    def _the_loop(self) -> DeviceLoop:
        if self._loop is None:
            self._loop = self._make_loop()
        return self._loop

    def _make_loop(self) -> DeviceLoop:
        reads = self.reads_before_last_step
        return DeviceLoop(
            self._program,
            self._loss.dtype,
            stop_on_nan=self._stop_on_nan,
            may_choose=self._program.is_flat,
            next_element=self._feed.next,
            interrupted=lambda: self.interrupted(),
            calls=self._program.queue,
            counter=self.global_step_variable(),
            notes_before=reads,
            tuning=self._tuning,
        )

    def _run_single(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        fed: Sequence[tf.Tensor] = (),
        values: Sequence[np.ndarray] = (),
    ) -> list[Any]:
        names = tuple(tuple(x.name for x in each) for each in (fetches, targets, fed))
        if names not in self._single:
            program = self._step_program(fetches, targets, jit=False, fed=fed)
            self._single[names] = functions.function(
                lambda iterator, *values: program(self._feed.next(iterator), *values)
            )
        self.input_stands_at = self._noted_step = None
        self.finish_host_calls()
        with eager.eager_mode():
            try:
                outputs = self._single[names](self.iterator(), *map(tf.constant, values))
            except StopIteration:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None
        return [as_numpy(v) for v in outputs]
