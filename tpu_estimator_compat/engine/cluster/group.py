"""The protocol by which machines, one process each, agree on every step and save of a training.

Each machine runs the whole script: the same model_fn, on its own data, with its own hooks. Within a
step, replicas exchange values by collectives, in which a machine waits for all others, forever if
one does not come. So before each step the machines agree that all of them make it. They meet: at a
place in the script, each machine sends its `State`, and goes on when it has all states.

A training, place by place (`loop/group_runner.py` implements it, with the runners
`loop/workers_runner.py` and `jax/processes/runner.py`):

=============  ===========  ======================================================================
place          state        meaning, and what all machines do
=============  ===========  ======================================================================
at the start   READY        Its graph is built. Once all are ready: they compare checksums of their
                            graphs (all raise ValueError where one differs from the chief's), and
                            take over the chief's values of all variables.
               FAILED       It makes no step. The others raise MachineLostError.
before a step  READY        It has an element. Once all are ready: they make the step, and come here
                            again. A NaN ends the loop on all machines: the loss is the same.
               OUT_OF_DATA  Its data has ended. No machine makes the step; all stop.
               LEAVING      A hook of its own, or a signal, has stopped it. No machine makes the
                            step; all stop, with a log line that names it.
               FAILED       It has raised an error. All others raise MachineLostError.
               ASKING       It needs values that others hold: see below. No step is made.
at the end     READY        It has stopped, and has written its files. Once all have: they end.
                            Where the data of some had ended and others had more: all raise
                            ValueError now, when all steps are in the checkpoint.
               ASKING       It saves its last checkpoint: see below.
               FAILED       It could not write. The others raise MachineLostError.
=============  ===========  ======================================================================

A save, or another read of values of which each machine holds a part:

1. One machine (the chief, for a save) sends ASKING at the next meeting place of the others. It does
   not wait for them to stop: they see its state before their next step.
2. All others serve: they call the last of the group's `servers`, which sends the values (rows of
   tables: `state/sharded_variables.py`; parts on JAX's devices: `jax/variables.py`).
3. These come to the same place again, with the same state. All wait for the machine that asked,
   which goes on with its script and comes here with its next state.

Where a machine is lost before it can tell that it failed, the exchange breaks down, and all
machines that wait in it raise MachineLostError.

Evaluation and prediction run on one machine, with one exception: JAX processes that all come to a
call within a minute (`Processes.together`) share it, and follow the same table. If a machine leaves
there while others are READY, the others raise an error: their result is not complete.

Two transports implement `Group`. `cluster/workers.py`, between machines of a
MultiWorkerMirroredStrategy: TensorFlow's collectives. Places are names, and loops exchange states
within their graph. `jax/processes/group.py`, between processes of JAX: the key-value store of JAX's
coordinator. Meetings are numbered, and each machine also sends how many steps it can make.
"""

from __future__ import annotations

import abc
import enum
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

CHIEF = 0
"""The index of the machine that writes checkpoints and events."""

AT_THE_START, BEFORE_A_STEP, AT_THE_END = "at the start", "before a step", "at the end"


class State(enum.IntEnum):
    """The state that a machine sends to the others; see the module's table."""

    READY = 0
    OUT_OF_DATA = 1
    LEAVING = 2
    FAILED = 3
    ASKING = 4


class MachineLostError(RuntimeError):
    """Another machine of the cluster failed, or cannot be reached any more."""


class Group(abc.ABC):
    """The machines that run steps together, one process each. All call it in the same order.

    Attributes:
      servers: functions that send values to a machine that asks. The last one registered answers:
        it belongs to the innermost training.
    """

    count: int
    index: int
    servers: list[Callable[..., Any]]

    @property
    def is_chief(self) -> bool:
        return self.index == CHIEF

    @abc.abstractmethod
    def meet(self, state: State, place: str) -> np.ndarray:
        """Waits until all machines are at `place`, and serves those that ask; returns all states.

        Raises MachineLostError or an OpError where a machine is lost.
        """

    @abc.abstractmethod
    def fail(self, place: str, *, owes_step: bool) -> None:
        """Tells the others at the next meeting, at `place`, that this machine has failed.

        With `owes_step`, it agreed to a step and does not make it; the others may be in this step.
        """

    @abc.abstractmethod
    def numbers(self, number: int, name: str) -> np.ndarray:
        """The numbers of all machines; each passes its own `number`, under the same `name`."""

    @abc.abstractmethod
    def from_chief(self, value: Any, name: str) -> Any:
        """The chief's `value`, of the same shape and dtype everywhere, on every machine."""

    def tell(self, number: int, name: str) -> int:
        """The chief's `number`, on every machine."""
        return int(self.numbers(int(number), name)[CHIEF])

    def check_same(self, graph: str) -> None:
        """Raises ValueError on all machines where one passes another text than the chief."""
        numbers = self.numbers(zlib.crc32(graph.encode()), "graph").tolist()
        others = [i for i, number in enumerate(numbers) if number != numbers[CHIEF]]
        if others:
            raise ValueError(
                f"model_fn built another graph on machine(s) {others} than on the chief. Variables "
                "and exchanges must have the same names in the same order everywhere: let neither "
                "depend on the task in TF_CONFIG."
            )


def check_none_failed(states: np.ndarray) -> None:
    """Raises MachineLostError where a machine has failed."""
    failed = np.flatnonzero(states == State.FAILED)
    if failed.size:
        raise MachineLostError(
            f"This machine stopped because machine {failed[0]} of {len(states)} failed. Its own "
            "log says why. Start the script again on all machines: training goes on from the last "
            "checkpoint."
        )


def check_even_data(states: np.ndarray) -> None:
    """Raises ValueError where some machines had data left when others' ended."""
    ended = np.flatnonzero(states == State.OUT_OF_DATA).tolist()
    going_on = np.flatnonzero(states == State.READY).tolist()
    if not ended or not going_on:
        return
    raise ValueError(
        f"The data of machine(s) {ended} ended while machine(s) {going_on} had more. All steps "
        "until then are in the checkpoint. Give every machine the same number of batches, or "
        "repeat() the data and limit training by steps or max_steps."
    )


def check_nothing_fed(feeds: Sequence[tuple[tf.Tensor, np.ndarray]]) -> None:
    """Raises NotImplementedError where a hook feeds a step of several machines."""
    for tensor, _ in feeds:
        raise NotImplementedError(
            f"A hook feeds {tensor.name!r} in a step of several machines, which is not "
            "supported. Put the value in a variable, and assign it in before_run."
        )
