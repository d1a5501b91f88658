"""Runs a plan's steps on the replicas of a tf.distribute strategy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.functions import eager, functions, tuning
from tpu_estimator_compat.engine.functions.traces import Contents
from tpu_estimator_compat.engine.functions.tuner import Tuner
from tpu_estimator_compat.engine.graph.graph_ops import key
from tpu_estimator_compat.engine.loop.collect_loop import CollectLoop
from tpu_estimator_compat.engine.loop.device_loop import DeviceLoop
from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.loop.runner import RunLimits, Runner
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_function import as_numpy, is_handle
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.program import StepProgram, build_step
from tpu_estimator_compat.engine.step.random_streams import RandomStreams


class ReplicaRunner(Runner):
    """Runs steps on TensorFlow's replicas.

    It creates the variables of steps, one component per replica, before initializers or restores.

    Args:
      next_element: takes the next element from the iterator, where TensorFlow builds a step.
      streams: of random ops, which the runner continues; None for new streams.
    """

    def __init__(
        self,
        plan: StepPlan,
        store: VariableStore,
        limits: RunLimits | None = None,
        *,
        next_element: Callable[[Iterator], Any] = next,
        streams: RandomStreams | None = None,
    ):
        self.plan, self.store = plan, store
        self._next_element = next_element
        self._limits = limits or RunLimits()
        self._step_in_loop: tf.Variable | None = None
        if plan.host_calls and plan.host_calls_every > 1:
            with eager.eager_mode(), tf.device("/cpu:0"):
                self._step_in_loop = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.streams = streams or RandomStreams()
        # With several workers, only Keras' loops use this runner.
        self._alone = workers.of(store.strategy) is None
        queued = plan.loss is not None and bool(plan.targets) and self._alone
        self.program = self._program(plan, queued=queued)
        self._loop: DeviceLoop | None = None
        self._collect: CollectLoop | None = None
        self._single: dict[Any, Callable[..., list[Any]]] = {}

    def _program(
        self, plan: StepPlan, *, fed: Sequence[tf.Tensor] = (), queued: bool = False
    ) -> StepProgram:
        return build_step(
            plan,
            self.store,
            fed=fed,
            queued=queued,
            step_in_loop=self._step_in_loop,
            streams=self.streams,
        )

    def begin_loop(self) -> None:
        if self._step_in_loop is not None:
            with eager.eager_mode():
                self._step_in_loop.assign(0)

    @property
    def notes_before(self) -> bool:
        return self._the_loop().notes_before

    def _the_loop(self) -> DeviceLoop:
        if self._loop is None:
            self._loop = DeviceLoop(
                self.program,
                next_element=self._next_element,
                interrupted=self._limits.interrupted,
                notes_before=not self._limits.reads_after_loop,
                whole=not self._alone,
            )
        return self._loop

    def run(self, iterator: Iterator, steps: int) -> LoopResult:
        return self._the_loop()(iterator, steps)

    def run_once(
        self,
        iterator: Iterator,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> list[Any]:
        fed = [tensor for tensor, _ in feeds]
        names = tuple(tuple(x.name for x in each) for each in (fetches, targets, fed))
        asked = names, tuple(value.shape for _, value in feeds)
        if asked not in self._single:
            program = self._program(self.plan.of(fetches, targets), fed=fed)
            self._single[asked] = self._fetching(program, fetches, fed)
        self.finish_host_calls()
        with eager.eager_mode(), functions.call_options():
            try:
                outputs = self._single[asked](iterator, *(tf.constant(v) for _, v in feeds))
            except StopIteration:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None
        return [as_numpy(v) for v in outputs]

    def _fetching(
        self, program: StepProgram, fetches: Sequence[tf.Tensor], fed: Sequence[tf.Tensor]
    ) -> Callable[..., list[tf.Tensor]]:
        """A function from an iterator and values of `fed` to all outputs of one step."""

        def step(iterator: Iterator, *values: tf.Tensor) -> list[tf.Tensor]:
            return program(self._next_element(iterator), *values)

        if any(map(is_handle, fetches)):
            return functions.function(step)
        contents = program.contents()
        contents = contents and contents.within("run once")
        if fed:
            return functions.IteratorFunction(step, contents)
        return FetchingStep(step, contents, may_choose=program.may_run_on_one_thread)

    def element_function(self) -> Callable[[Any], list[tf.Tensor]]:
        made: Callable[[Any], list[tf.Tensor]]
        made = functions.function(self.program, reduce_retracing=True)
        return made

    def can_collect(self, fetches: Sequence[tf.Tensor]) -> bool:
        """Whether there is one replica, and all `fetches` have a batch dimension."""
        one = self.store.strategy.num_replicas_in_sync == 1
        return one and all(t.shape.rank for t in fetches)

    def collect(
        self, iterator: Iterator, fetches: Sequence[tf.Tensor], most: int
    ) -> list[list[np.ndarray]]:
        if self._collect is None:
            program = self.program  # a session that predicts has the same fetches
            if list(map(key, program.fetches)) != list(map(key, fetches)):
                program = self._program(self.plan.of(fetches, []))
            self._collect = CollectLoop(program, [(t.dtype, t.shape.rank) for t in fetches])
        return self._collect(iterator, most)

    def finish_host_calls(self, using: str | None = None) -> None:
        queue = self.program.queue
        if queue is not None and (using is None or queue.uses(using)):
            queue.finish()

    def close(self) -> None:
        if self.program.queue is not None:
            self.program.queue.close()
        super().close()
        self._loop = self._collect = None
        self._single.clear()


class FetchingStep:
    """Runs one step in a call and returns all outputs, for hooks that fetch tensors of a step."""

    def __init__(
        self,
        step: Callable[[Iterator], list[tf.Tensor]],
        contents: Contents | None = None,
        *,
        may_choose: bool,
    ):
        self._clock = tuning.NUMBERS.clock
        self._tuner = Tuner(may_choose, patience=math.inf)
        self._function = functions.PerExecutor(lambda: functions.IteratorFunction(step, contents))

    def __call__(self, iterator: Iterator) -> list[tf.Tensor]:
        """Makes one step; raises StopIteration or OutOfRangeError where the data has ended."""
        call = self._tuner.next(1)
        started = self._clock()
        outputs = self._function(call.executor, iterator)
        self._tuner.record(call, 1, self._clock() - started)
        return outputs
