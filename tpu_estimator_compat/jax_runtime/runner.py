"""Runs a plan's steps on JAX's devices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.graph.graph_ops import key
from tpu_estimator_compat.inputs.deployment import flat_parts
from tpu_estimator_compat.jax_runtime.dispatches import NOTHING, Chunk, Done
from tpu_estimator_compat.jax_runtime.host_stage import JaxHostStage
from tpu_estimator_compat.jax_runtime.step import JaxStep
from tpu_estimator_compat.jax_runtime.step_function import Drawing, Placed
from tpu_estimator_compat.jax_runtime.variables import DeviceStore
from tpu_estimator_compat.loop.result import LoopResult
from tpu_estimator_compat.runtime import eager
from tpu_estimator_compat.runtime.tuning import DEFAULTS
from tpu_estimator_compat.step.plan import StepPlan
from tpu_estimator_compat.topology.jax_devices import JaxTopology

Names = tuple[str, ...]


class JaxRunner:
    """A `Runner` on JAX's devices.

    Args:
      plan: the computation of a step.
      store: its live variables.
      topology: the devices.
      seed: of the random numbers; None for others in every training.
      interrupted: asked within long runs whether to end them early.
      stacked: whether the elements of replicas are stacked, as `DeployedInput` gives them, or
        concatenated, as Keras does.
      makes_host_calls: whether this process makes host calls: one of several does.
      trains: whether steps train: where one of several processes stops then, all do.
    """

    ended = False
    notes_before = False

    def __init__(
        self,
        plan: StepPlan,
        store: DeviceStore,
        topology: JaxTopology,
        *,
        seed: int | None,
        interrupted: Callable[[], bool] = lambda: False,
        stacked: bool = True,
        makes_host_calls: bool = True,
        trains: bool = True,
    ):
        self.plan, self.store = plan, store
        _warn_of_uneven_parts(plan)
        self._topology = topology
        self._interrupted = interrupted
        self._stacked = stacked and topology.replicas_per_element > 1
        self._concatenated = not stacked
        self._makes_host_calls = makes_host_calls
        self._trains = trains
        self._step = self._new_step(plan)
        self._others: dict[tuple[Names, ...], JaxStep] = {}
        self._key = _key_of(seed)
        self._position: int | None = None
        self._step_in_loop = 0
        self._most: int | None = None
        self._input_error: tf.errors.OpError | None = None

    def _new_step(self, plan: StepPlan, **kwargs: Any) -> JaxStep:
        topology = self._topology
        return JaxStep(
            plan, self.store, topology.mesh, first_replica=topology.first_replica, **kwargs
        )

    def start(self, restored: str | None = None) -> None:
        """Does nothing: there are no other machines."""

    def begin_loop(self) -> None:
        """See `Runner`."""
        self._step_in_loop = 0

    def run(self, iterator: Iterator, steps: int) -> LoopResult:
        """See `Runner`."""
        with eager.eager_mode():
            return self._run(iterator, steps)

    def _run(self, iterator: Iterator, steps: int) -> LoopResult:
        made, total, loss = 0, 0.0, None
        exhausted = stopped = False
        most = self._most_for(steps)
        chunk = self._next(iterator, min(most, steps), self._step)
        placed = self._placed(self._step, chunk, most)
        waiting: Done | None = None  # for the host's share, which is done while the next ones run
        while chunk.steps:
            done = self._dispatch(self._step, chunk, most, placed)
            self._finish(waiting)
            waiting = done
            if not self._step.overlaps:
                self._finish(waiting)
                waiting = None
            wanted = 0 if self._interrupted() else min(most, steps - made - chunk.steps)
            try:
                chunk = self._next(iterator, wanted, self._step) if wanted else NOTHING
            except tf.errors.OpError:
                self._finish(waiting)  # these steps are made
                raise
            placed = self._placed(self._step, chunk, most)  # while the devices are at work
            for losses in done.losses():
                loss, made, total = losses, made + 1, total + float(losses)
            stopped = self.plan.stop_on_nan and loss is not None and bool(np.isnan(loss))
            exhausted = chunk.steps < wanted
            if stopped:
                break
        self._finish(waiting)
        exhausted |= not made
        counter = None if exhausted else self._counter()
        loss = tf.constant(np.nan if loss is None else loss)
        return LoopResult(made, loss, total, exhausted, counter, None, stopped)

    def _most_for(self, steps: int) -> int:
        """The largest number of steps of a dispatch."""
        if steps == 1 or not self._step.overlaps:
            return 1
        if self._topology.platform == "cpu" and self._step.has_convolution:
            return 1  # within loops, XLA's CPU backend takes ten times as long for convolutions
        if self._most is None:
            self._most = DEFAULTS.steps_of_dispatch(self._step.bytes_of_step, steps)
        elif steps > self._most:  # loops in seconds begin with short ones: compile once more
            self._most = DEFAULTS.steps_of_dispatch(self._step.bytes_of_step, None)
        return self._most

    @property
    def step(self) -> JaxStep:
        """A step of the plan."""
        return self._step

    def feeds(self, iterator: Iterator, steps: int) -> list[np.ndarray]:
        """The input of the next steps, as `StepFunction.place` takes it."""
        with eager.eager_mode():
            return self._next(iterator, steps, self._step).feeds

    def _next(self, iterator: Iterator, steps: int, step: JaxStep) -> Chunk:
        """Elements for up to `steps` steps; fewer at the end of the data, or before an error."""
        if step.stage is not None:
            parts = self._parts_for_stage(iterator)
            return NOTHING if parts is None else self._staged(parts, step.stage)
        elements: list[list[np.ndarray]] = []
        self._read(iterator, steps, elements)
        if not elements:
            return NOTHING
        return Chunk(len(elements), [self._joined(p) for p in zip(*elements, strict=True)])

    def _read(self, iterator: Iterator, steps: int, elements: list[list[np.ndarray]]) -> None:
        """Adds to `elements` until there are so many, where there are.

        An error of the input is raised when the steps before it are made.
        """
        if self._input_error is not None and not elements:
            error, self._input_error = self._input_error, None
            raise error
        try:
            while self._input_error is None and len(elements) < steps:
                if (parts := flat_parts(iterator)) is None:
                    return
                elements.append(parts)
        except tf.errors.OpError as error:
            if not elements:
                raise
            self._input_error = error

    def _parts_for_stage(self, iterator: Iterator) -> list[list[np.ndarray]] | None:
        """The parts of an element of every replica; None at the end of the data."""
        replicas = self._topology.replicas_per_element
        count = 1 if self._concatenated else replicas
        found = itertools.islice(iterator, count)
        elements = [[t.numpy() for t in tf.nest.flatten(e, expand_composites=True)] for e in found]
        if len(elements) < count:
            return None
        if count < replicas:
            [whole] = elements
            elements = list(zip(*(np.split(part, replicas) for part in whole), strict=True))
        return elements

    def _staged(self, elements: list[list[np.ndarray]], stage: JaxHostStage) -> Chunk:
        """Elements of every replica, and what the host looks up for them."""
        fed, results = stage(elements)
        # [replicas, share, ...]
        feeds = [a[None] if a.ndim == 1 else a.reshape(1, -1, *a.shape[2:]) for a in fed]
        return Chunk(1, feeds, results)

    def _joined(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Elements of some steps as an array [steps, replicas * share, ...]."""
        array = parts[0][None] if len(parts) == 1 else np.stack(parts)
        if not self._stacked:  # [steps, replicas * share, ...]
            return array[:, None] if array.ndim == 1 else array
        # [steps, replicas, share, ...]
        return array if array.ndim == 2 else array.reshape(len(parts), -1, *array.shape[3:])

    def _placed(self, step: JaxStep, chunk: Chunk, most: int) -> Placed | None:
        """The next dispatch's arguments, on their way to the devices; None for an empty chunk."""
        if not chunk.steps:
            return None
        if self._position is None:
            counter = self._counter()
            self._position = 0 if counter is None else int(counter)
        feeds = [_filled_up(array, most) for array in chunk.feeds]
        return step.place(feeds, chunk.steps, most, Drawing(self._key, self._position))

    def _dispatch(
        self, step: JaxStep, chunk: Chunk, most: int, placed: Placed | None = None
    ) -> Done:
        """Starts the steps of a chunk, which `_placed` may have sent to the devices already."""
        placed = placed or self._placed(step, chunk, most)
        assert placed is not None
        dispatched = step.dispatch(placed, most)
        assert self._position is not None
        self._position += chunk.steps
        return Done(step, chunk, dispatched)

    def _finish(self, done: Done | None) -> None:
        """The host's share of the steps of a dispatch."""
        if done is None:
            return
        for index in range(done.made):
            due = self._call_is_due()
            if done.step.has_host_share:
                done.step.finish(done.values(index), {}, makes_calls=due)

    def _fetches(self, done: Done | None) -> list[list[Any]]:
        """The host's share of the steps of a dispatch, and what they fetch."""
        if done is None:
            return []
        fetched = []
        for index in range(done.made):
            values, due = done.values(index), self._call_is_due()
            fetched.append(done.step.fetches(values, {}, makes_calls=due))
        return fetched

    def _call_is_due(self) -> bool:
        """Whether the next step makes host calls."""
        due = self._step_in_loop % self.plan.host_calls_every == 0
        self._step_in_loop += 1
        return due and self._makes_host_calls

    def _counter(self) -> np.ndarray | None:
        step = tf.compat.v1.train.get_global_step(self.plan.graph)
        return None if step is None else self.store.peek(step.op.name)

    def run_once(
        self,
        iterator: Iterator,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> list[Any]:
        """See `Runner`."""
        step = self._other(fetches, targets, feeds)
        with eager.eager_mode():
            chunk = self._next(iterator, 1, step)
        if not chunk.steps:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        replicas = self._topology.num_replicas
        for _, value in feeds:
            rows = value if value.ndim else value[None]
            chunk.feeds.append(np.concatenate([rows] * replicas)[None])
        done = self._dispatch(step, chunk, 1)
        fed = {key(tensor): value for tensor, value in feeds}
        return step.fetches(done.values(0), fed, makes_calls=self._call_is_due())

    def _other(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> JaxStep:
        fed = [(tensor, value.shape) for tensor, value in feeds]
        names = (
            tuple(t.name for t in fetches),
            tuple(op.name for op in targets),
            tuple(f"{t.name} {shape}" for t, shape in fed),
        )
        if names not in self._others:
            plan = self.plan.of(fetches, targets)
            self._others[names] = self._new_step(plan, fed=fed)
        return self._others[names]

    def element_function(self) -> Callable[[Any], list[tf.Tensor]]:
        """A function of the concatenated input elements of all replicas to the plan's fetches."""

        def function(element: Any) -> list[tf.Tensor]:
            with eager.eager_mode():
                if (stage := self._step.stage) is not None:
                    elements = self._parts_for_stage(iter([element]))
                    assert elements is not None
                    chunk = self._staged(elements, stage)
                else:
                    parts = [t.numpy() for t in tf.nest.flatten(element)]
                    chunk = Chunk(1, [self._joined([part]) for part in parts])
                [fetched] = self._fetches(self._dispatch(self._step, chunk, 1))
                return [tf.convert_to_tensor(value) for value in fetched]

        return function

    def can_collect(self, fetches: Sequence[tf.Tensor]) -> bool:
        """See `Runner`."""
        return all(t.shape.rank for t in fetches)

    def collect(
        self, iterator: Iterator, fetches: Sequence[tf.Tensor], most: int
    ) -> list[list[np.ndarray]]:
        """See `Runner`."""
        same = list(map(key, self.plan.fetches)) == list(map(key, fetches))
        step = self._step if same and not self.plan.targets else self._other(fetches, [])
        results: list[list[np.ndarray]] = []
        done: Done | None = None
        with eager.eager_mode():
            for _ in range(most):
                chunk = self._next(iterator, 1, step)
                if not chunk.steps:
                    break
                before, done = done, self._dispatch(step, chunk, 1)
                results += self._fetches(before)
            return results + self._fetches(done)

    def finish_host_calls(self, using: str | None = None) -> None:
        """Does nothing: host calls are made when `run` returns."""

    def leave(self) -> None:
        """Does nothing: no other machine waits."""

    def fail(self) -> None:
        """Does nothing: no other machine waits."""

    def close(self) -> None:
        """See `Runner`."""
        self.store.flush_summaries()
        self._others.clear()


def _key_of(seed: int | None) -> int:
    """63 bits of a seed, which may be negative."""
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


def _filled_up(array: np.ndarray, most: int) -> np.ndarray:
    """`array` with zeros for steps that are not made."""
    missing = most - len(array)
    if not missing:
        return array
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)])
