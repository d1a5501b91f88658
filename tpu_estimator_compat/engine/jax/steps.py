"""Starts the steps of a plan on JAX's devices, many in one dispatch, and runs their host parts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.functions import tuning
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.jax.step import JaxStep, Values
from tpu_estimator_compat.engine.jax.step_function import Dispatched, Placed
from tpu_estimator_compat.engine.jax.topology import JaxTopology
from tpu_estimator_compat.engine.jax.variables import DeviceStore
from tpu_estimator_compat.engine.loop.result import LoopResult, ends_training
from tpu_estimator_compat.engine.step.plan import StepPlan


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Input of some steps: per feed an array [steps, replicas * batch, ...].

    `of_stage` has the host stage's results over all replicas; with a stage, `steps` is 1.
    """

    steps: int
    feeds: list[np.ndarray]
    of_stage: dict[Key, np.ndarray] = dataclasses.field(default_factory=dict)


NOTHING = Chunk(0, [])


class StartedSteps:
    """The steps of a dispatch, which may still run; the methods wait for them."""

    def __init__(self, step: JaxStep, chunk: Chunk, dispatched: Dispatched):
        self.step = step
        self._chunk = chunk
        self._dispatched = dispatched

    @functools.cached_property
    def made(self) -> int:
        return 1 if self._chunk.steps == 1 else int(np.asarray(self._dispatched.steps))

    def values(self, index: int) -> Values:
        feeds = [array[index] for array in self._chunk.feeds]
        return {**self.step.values(self._dispatched, index, feeds), **self._chunk.of_stage}

    def losses(self) -> list[np.generic]:
        return [self.step.loss(self._dispatched, index) for index in range(self.made)]


class LossSum:
    """Counts the steps of a run and adds up their losses; `stopped`: a NaN has ended the run."""

    def __init__(self, *, trains: bool):
        self._trains = trains
        self.steps = 0
        self.stopped = False
        self._sum = 0.0
        self._loss: np.generic | None = None

    def add(self, started: StartedSteps) -> None:
        for self._loss in started.losses():
            self.steps, self._sum = self.steps + 1, self._sum + float(self._loss)
        self.stopped = self._trains and self.steps > 0 and ends_training(self._loss)

    def result(self, exhausted: bool, counter: np.ndarray | None) -> LoopResult:
        loss = tf.constant(np.nan if self._loss is None else self._loss)
        return LoopResult(self.steps, loss, self._sum, exhausted, counter, None, self.stopped)


class Steps:
    """The step of a plan, `main`, and steps with other fetches and targets of its graph.

    With a seed of the graph, each training draws the same random numbers. Of several processes,
    the first one makes the host calls.

    Attributes:
      key: the key of the random numbers, the same in all processes.
    """

    def __init__(self, plan: StepPlan, store: DeviceStore, topology: JaxTopology):
        _warn_of_uneven_parts(plan)
        self._plan, self.store, self._topology = plan, store, topology
        self.main = self.new(plan)
        self.key = _key_of(plan.graph.seed)
        self._others: dict[tuple[tuple[str, ...], ...], JaxStep] = {}
        self._position: int | None = None
        self._step_in_loop = 0
        self._most: int | None = None

    def new(self, plan: StepPlan, **kwargs: Any) -> JaxStep:
        """The step of a plan of the same graph; for the arguments see `JaxStep`."""
        return JaxStep(plan, self.store, self._topology, **kwargs)

    def other(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> JaxStep:
        """The step with other fetches, targets and feeds; cached."""
        fed = [(tensor, value.shape) for tensor, value in feeds]
        names = (
            tuple(t.name for t in fetches),
            tuple(op.name for op in targets),
            tuple(f"{t.name} {shape}" for t, shape in fed),
        )
        if names not in self._others:
            self._others[names] = self.new(self._plan.of(fetches, targets), fed=fed)
        return self._others[names]

    def clear(self) -> None:
        self._others.clear()

    def most_for(self, steps: int) -> int:
        """The largest number of steps of a dispatch in a run of `steps`."""
        if steps == 1 or not self.main.overlaps:
            return 1
        if self._topology.platform == "cpu" and self.main.has_convolution:
            return 1  # within loops, XLA's CPU backend takes ten times as long for convolutions
        if self._most is None:
            self._most = tuning.NUMBERS.steps_of_dispatch(self.main.device.bytes_of_step, steps)
        elif steps > self._most:  # loops timed in seconds start short: compiles once more
            self._most = tuning.NUMBERS.steps_of_dispatch(self.main.device.bytes_of_step, None)
        return self._most

    def placed(self, step: JaxStep, chunk: Chunk, most: int) -> Placed | None:
        """The next dispatch's arguments, on their way to the devices; None for an empty chunk."""
        if not chunk.steps:
            return None
        if self._position is None:
            counter = self.counter()
            self._position = 0 if counter is None else int(counter)
        feeds = chunk.feeds
        if missing := most - chunk.steps:  # zeros for steps that are not made
            filling = [np.zeros((missing, *array.shape[1:]), array.dtype) for array in feeds]
            feeds = list(map(np.concatenate, zip(feeds, filling, strict=True)))
        return step.function(most).place(feeds, chunk.steps, self.key, self._position)

    def dispatch(
        self, step: JaxStep, chunk: Chunk, most: int, placed: Placed | None = None
    ) -> StartedSteps:
        """Starts the steps of a chunk; sends its input unless `placed` is given."""
        placed = placed or self.placed(step, chunk, most)
        assert placed is not None
        dispatched = step.dispatch(placed, most)
        assert self._position is not None
        self._position += chunk.steps
        return StartedSteps(step, chunk, dispatched)

    def begin_loop(self) -> None:
        """Resets the count of steps in a loop, by which host calls run every n-th step."""
        self._step_in_loop = 0

    def finish(self, started: StartedSteps) -> None:
        for index in range(started.made):
            due = self._call_is_due()
            if started.step.has_host_part:
                started.step.finish(started.values(index), {}, makes_calls=due)

    def fetches(
        self, started: StartedSteps | None, fed: Sequence[tuple[tf.Tensor, np.ndarray]] = ()
    ) -> list[list[Any]]:
        """Runs the host parts of a dispatch's steps, given `fed`; returns each step's fetches."""
        if started is None:
            return []
        given = {key(tensor): value for tensor, value in fed}
        fetched = []
        for index in range(started.made):
            due = self._call_is_due()
            fetched.append(started.step.fetches(started.values(index), given, makes_calls=due))
        return fetched

    def _call_is_due(self) -> bool:
        due = self._step_in_loop % self._plan.host_calls_every == 0
        self._step_in_loop += 1
        return due and self._topology.is_first_process

    def counter(self) -> np.ndarray | None:
        """The global step; None for a graph without one."""
        step = tf.compat.v1.train.get_global_step(self._plan.graph)
        return None if step is None else self.store.peek(step.op.name)


class Finishing:
    """Runs the host part of each dispatch of a run while the devices run the next one."""

    def __init__(self, steps: Steps):
        self._steps = steps
        self._waiting: StartedSteps | None = None

    def add(self, started: StartedSteps | None) -> None:
        """Finishes the previous dispatch; also `started`, where steps do not overlap."""
        self.end()
        self._waiting = started
        if not self._steps.main.overlaps:
            self.end()

    def end(self) -> None:
        started, self._waiting = self._waiting, None
        if started is not None:
            self._steps.finish(started)


def _key_of(seed: int | None) -> int:
    """A key of 63 bits from a seed, which may be negative."""
    entropy = None if seed is None else int(seed) % 2**64
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]) >> 1


def _warn_of_uneven_parts(plan: StepPlan) -> None:
    for feed, counts in zip(plan.feeds, plan.partition or [None] * len(plan.feeds), strict=True):
        for dimension, count in enumerate(counts or []):
            if (size := feed.shape[dimension]) % count:
                logging.warning(
                    "input_partition_dims splits dimension %d of %s, of size %d, in %d parts. On "
                    "JAX's devices parts are even: this dimension stays whole on the devices of a "
                    "replica. The results are the same.",
                    dimension,
                    feed.name,
                    size,
                    count,
                )
