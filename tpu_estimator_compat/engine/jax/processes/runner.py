"""Runs a plan's steps on the JAX devices of several processes, which agree on every dispatch."""

from __future__ import annotations

import contextlib
import dataclasses
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.cluster.group import State, check_nothing_fed
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.jax.elements import Elements, staged
from tpu_estimator_compat.engine.jax.processes.group import Processes, Record, lost_if_broken
from tpu_estimator_compat.engine.jax.step import JaxStep, Wanted
from tpu_estimator_compat.engine.jax.steps import Chunk, Finishing, LossSum, StartedSteps, Steps
from tpu_estimator_compat.engine.jax.topology import JaxTopology
from tpu_estimator_compat.engine.loop.group_runner import GroupRunner
from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.loop.runner import RunLimits
from tpu_estimator_compat.engine.step.plan import StepPlan


class ProcessesRunner(GroupRunner[Processes]):
    """A `Runner` on one of several processes of `jax.distributed`.

    Before each dispatch the processes tell each other the number of steps that they can make, and
    their fetches. All run the same program: as many steps as every process can make; or, where a
    hook fetches more than the plan, one step with the fetches of all processes. Loop lengths may
    differ between processes.

    Where processes that should be fed the same (see `JaxTopology`) read different elements, all
    take the elements of the first of them.

    When one process stops a training, all stop; in an evaluation or prediction, the
    others raise an error.
    """

    def __init__(
        self,
        plan: StepPlan,
        topology: JaxTopology,
        steps: Steps,
        elements: Elements,
        limits: RunLimits,
    ):
        super().__init__(topology.workers)
        self.plan, self.store = plan, steps.store
        self._steps = steps
        self._input = elements
        self._limits = limits
        self._replicas_per_element = topology.replicas_per_element
        self._serve(steps.store.put_together)
        steps.store.ask = self._group.values_of
        self._readers: list[int] = topology.readers
        self._elements: list[Any] = []  # read, and not yet used
        self._largest = 1
        self._together: dict[tuple[JaxStep, Wanted], JaxStep] = {}

    def _connected(self) -> contextlib.AbstractContextManager[None]:
        return lost_if_broken()

    def start(self, restored: str | None = None) -> None:
        """Takes over the chief's values of all variables, and its random numbers."""
        if self.plan.trains:
            logging.info(
                "%d processes train together. Where one is lost, JAX ends the others within a "
                "minute, and says so. Start the script again on all of them then: training goes on "
                "from the last checkpoint.",
                self._group.count,
            )
        step = self._steps.main
        names = sorted({*step.variables, *step.host_variables})
        wanted = step.device.wanted
        text = " ".join([*names, *wanted.fetches, *wanted.targets, *wanted.of_stage])
        self._start(text)
        self._steps.key = self._group.tell(self._steps.key, "key of random numbers")
        counter = tf.compat.v1.train.get_global_step(self.plan.graph)
        if counter is not None and counter.op.name in self.store:
            names = sorted({*names, counter.op.name})
        self.store.take_from_chief(self._group, names)

    def begin_loop(self) -> None:
        self._steps.begin_loop()

    def run(self, iterator: Iterator, steps: int) -> LoopResult:
        own, step = self._steps, self._steps.main
        losses = LossSum(trains=self.plan.trains)
        finishing = Finishing(own)
        with eager.eager_mode(), self._connected():
            while losses.steps < steps and not losses.stopped:
                if losses.steps and self._limits.interrupted():
                    break
                wanted = min(own.most_for(steps), steps - losses.steps)
                self._read_ahead(iterator, wanted)
                started = self._agreed_dispatch(step, wanted)
                finishing.add(started)
                if started is None:
                    break
                losses.add(started)
            finishing.end()
            return losses.result(self.ended, None if self.ended else own.counter())

    def _read_ahead(self, iterator: Iterator, wanted: int) -> None:
        if self._steps.main.stage is None:
            self._input.read(iterator, wanted, self._elements)
        elif not self._elements and (parts := self._input.parts_for_stage(iterator)) is not None:
            self._elements.append(parts)

    def _agreed_dispatch(self, step: JaxStep, most: int) -> StartedSteps | None:
        """Starts up to `most` steps of all processes together; None where one can make no step.

        Starts one step where a process wants another step than the plan's.
        """
        offered = self._elements[:most]
        wanted = None if step is self._steps.main else step.device.wanted
        are_fed_the_same = len(set(self._readers)) < self._group.count
        marks = [_mark_of(e) for e in offered] if are_fed_the_same else []
        state = State.READY if offered else State.OUT_OF_DATA
        records = self._group.exchange(
            {"state": state, "steps": len(offered), "most": most, "wanted": wanted, "marks": marks}
        )
        if not self._agree(self._states_of_readers(records)):
            self._check_together()
            return None
        self._owes_step = True
        if any(record["wanted"] for record in records):
            step, steps = self._union(step, [record["wanted"] for record in records]), 1
        else:
            there = min(records[first]["steps"] for first in set(self._readers))
            steps = min(there, *(record["most"] for record in records))
        self._largest = max(self._largest, steps)
        taken, self._elements = self._elements[:steps], self._elements[steps:]
        if any(r["marks"][:steps] != records[f]["marks"][:steps] for r, f in self._pairs(records)):
            taken = self._of_readers(taken, steps)
        chunk = self._chunk(taken, step)
        # All processes have seen the same numbers of steps, so `_largest` is the same in all.
        started = self._steps.dispatch(step, chunk, 1 if steps == 1 else self._largest)
        self._owes_step = False
        return started

    def _pairs(self, of_all: Sequence[Record]) -> list[tuple[Record, int]]:
        """The processes' records, each with the index of the first process fed the same."""
        return list(zip(of_all, self._readers, strict=True))

    def _states_of_readers(self, records: Sequence[Record]) -> np.ndarray:
        """The states; of processes fed the same, the first one decides whether there is data."""
        of_data = (State.READY, State.OUT_OF_DATA)
        return np.asarray(
            [
                records[first]["state"]
                if {record["state"], records[first]["state"]}.issubset(of_data)
                else record["state"]
                for record, first in self._pairs(records)
            ]
        )

    def _check_together(self) -> None:
        """Raises RuntimeError where a process has left a shared evaluation or prediction."""
        assert self.states is not None
        left = np.flatnonzero(self.states == State.LEAVING)
        if self.plan.trains or not left.size:
            return
        raise RuntimeError(
            f"Process {left[0]} of {self._group.count} ended an evaluation or prediction that the "
            "processes share, before this one had finished. Let all of them take the same number "
            "of steps or predictions."
        )

    def _of_readers(self, elements: list[Any], steps: int) -> list[Any]:
        """The elements for `steps` steps of the first process that is fed the same."""
        logging.log_first_n(
            logging.WARN,
            "Processes that should read the same elements read different ones: all take the "
            "elements of the first of them. Seeds for shuffles, and deterministic=True for the "
            "reading of files, make them the same.",
            1,
        )
        arrays = self._group.gather(tf.nest.flatten(elements))[self._readers[self._group.index]]
        found = _in_parts(arrays, steps)
        if self._steps.main.stage is None:
            return found
        return [_in_parts(element, self._replicas_per_element) for element in found]

    def _chunk(self, elements: list[Any], step: JaxStep) -> Chunk:
        """The elements of some steps, with the host stage's results of all processes."""
        if step.stage is None:
            return self._input.chunk(elements)
        [parts] = elements
        chunk = staged(parts, step.stage)
        firsts = sorted(set(self._readers))
        if len(firsts) == 1:
            return chunk
        of_all = self._group.gather(list(chunk.of_stage.values()))
        wholes = zip(*(of_all[first] for first in firsts), strict=True)
        joined = dict(zip(chunk.of_stage, map(np.concatenate, wholes), strict=True))
        return dataclasses.replace(chunk, of_stage=joined)

    def _union(self, step: JaxStep, wanted: Sequence[Any]) -> JaxStep:
        """`step` with the union of all processes' fetches, which are `wanted`."""
        together = Wanted.of_all([names or self._steps.main.device.wanted for names in wanted])
        if (step, together) not in self._together:
            try:
                union = self._steps.new(step.plan, together=together)
            except KeyError as error:
                raise ValueError(
                    f"A hook of another process fetches a tensor that the graph of process "
                    f"{self._group.index} does not have: {error}. Let hooks build the same tensors "
                    "in all processes."
                ) from None
            self._together[step, together] = union
        return self._together[step, together]

    def run_once(
        self,
        iterator: Iterator,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> list[Any]:
        check_nothing_fed(feeds)
        with eager.eager_mode(), self._connected():
            step = self._steps.other(fetches, targets)
            self._read_ahead(iterator, 1)
            started = self._agreed_dispatch(step, 1)
            if started is None:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence")
            [fetched] = self._steps.fetches(started)
            return fetched

    def close(self) -> None:
        super().close()
        self._steps.clear()


def _in_parts(arrays: list[np.ndarray], count: int) -> list[list[np.ndarray]]:
    size = len(arrays) // count
    return [arrays[i * size : (i + 1) * size] for i in range(count)]


def _mark_of(element: Any) -> int:
    """A checksum of the parts of an element."""
    mark = 0
    for part in tf.nest.flatten(element):
        mark = zlib.crc32(np.ascontiguousarray(part).tobytes(), mark)
    return mark
