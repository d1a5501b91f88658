"""The protocol by which machines, one process each, agree on every step and save of a training.

Each machine runs the whole script: the same model_fn on data of its own, with hooks of its own. The
values that replicas exchange within a step travel by collectives, in which a machine waits for all
others, for ever if one does not come. So the machines agree before each step that all of them make
it. They meet: each comes to a place in the script with its `State`, and goes on when it has the
states of all.

A training, place by place (`loop/group_runner.py` follows it; its runners are
`session/workers_runner.py` and `jax/processes/runner.py`):

=============  ===========  ======================================================================
place          state        meaning, and what all machines do
=============  ===========  ======================================================================
at the start   READY        Its graph is built. Where all are: they compare checksums of their
                            graphs (all raise ValueError where one differs from the chief's), and
                            take over the chief's values of all variables.
               FAILED       It never makes a step. The others raise MachineLostError.
before a step  READY        It has an element. Where all are: they make the step, and come here
                            again. A NaN ends the loop on all machines: the loss is the same.
               OUT_OF_DATA  Its data has ended. Nobody makes the step; all stop.
               LEAVING      A hook of its own, or a signal, has stopped it. Nobody makes the step;
                            all stop, with a log line that names it.
               FAILED       It has raised an error. All others raise MachineLostError.
               ASKING       It needs values that others hold: see below. No step either way.
at the end     READY        It has stopped, and has written its files. Where all have: they end.
                            Where the data of some had ended and others had more: all raise
                            ValueError now, when all steps are in the checkpoint.
               ASKING       It saves its last checkpoint: see below.
               FAILED       It could not write. The others raise MachineLostError.
=============  ===========  ======================================================================

A save, or another look at values of which the others hold a part:

1. One machine (the chief, where it saves) comes with ASKING to the place where the others are, or
   will come to next. It does not wait for them to stop: they find it in the states before their
   next step.
2. All others serve: they call the last of the group's `servers`, which gives what is asked for
   (rows of tables: `state/sharded_variables.py`; parts on JAX's devices: `jax/variables.py`).
3. They come to the same place again, with the state that they had. Now all wait for the one that
   asked, which goes on with its script and comes here with READY or LEAVING.

Where a machine is lost instead of telling that it failed, the exchange itself breaks down, and all
that wait in it raise MachineLostError.

Evaluation and prediction run on one machine each, with one exception: processes of JAX share a call
to which all come within a minute (`Processes.together`), and then go by the same table. There a
machine that leaves while others are READY is an error of those: what they have is not the whole.

There are two transports of this interface. Between machines of a MultiWorkerMirroredStrategy,
`runtime/workers.py`: collectives of TensorFlow. Places are names, and loops exchange states within
their graph. Between processes of JAX, `jax/processes/group.py`: the key-value store of JAX's
coordinator. Meetings are numbered, and records say more than the state: the steps of a dispatch.
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
    """The state that a machine tells the others; see the table of the module."""

    READY = 0
    OUT_OF_DATA = 1
    LEAVING = 2
    FAILED = 3
    ASKING = 4


class MachineLostError(RuntimeError):
    """Another machine of the cluster failed, or cannot be reached any more."""


class Group(abc.ABC):
    """The machines that run steps together, one process each.

    All make the calls of these methods in the same order.

    Attributes:
      count: the number of members.
      index: the number of this process among them; 0 is the chief.
      servers: functions that give others what they ask for. The last one serves: that of the
        innermost steps.
    """

    count: int
    index: int
    servers: list[Callable[..., Any]]

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints and events."""
        return self.index == CHIEF

    @abc.abstractmethod
    def meet(self, state: State, place: str) -> np.ndarray:
        """The states of all machines, once each of them has come to `place` with its own.

        Serves the others as often as they ask.

        Raises:
          MachineLostError, tf.errors.OpError: a machine is lost.
        """

    @abc.abstractmethod
    def fail(self, place: str, *, owes_step: bool) -> None:
        """Tells the others, who are at `place` or will come to it, that this machine has failed.

        Args:
          place: the place of the next meeting.
          owes_step: whether they may be in a step that this machine has agreed to, and does not
            make.
        """

    @abc.abstractmethod
    def numbers(self, number: int, name: str) -> np.ndarray:
        """The numbers of all machines; each gives its own under the same `name`."""

    @abc.abstractmethod
    def from_chief(self, value: Any, name: str) -> Any:
        """The chief's `value`, of the same shape and dtype everywhere, on every machine."""

    def tell(self, number: int, name: str) -> int:
        """The chief's `number`, on every machine; all call it with the same `name`."""
        return int(self.numbers(int(number), name)[CHIEF])

    def check_same(self, graph: str) -> None:
        """Raises ValueError on all machines where one calls this with another text."""
        numbers = self.numbers(zlib.crc32(graph.encode()), "graph").tolist()
        others = [i for i, number in enumerate(numbers) if number != numbers[CHIEF]]
        if others:
            raise ValueError(
                f"model_fn built another graph on machine(s) {others} than on the chief. Variables "
                "and exchanges must have the same names in the same order everywhere: let neither "
                "depend on the task in TF_CONFIG."
            )


def check_none_failed(states: np.ndarray) -> None:
    """Raises MachineLostError where one of the machines failed."""
    failed = np.flatnonzero(states == State.FAILED)
    if failed.size:
        raise MachineLostError(
            f"This machine stopped because machine {failed[0]} of {len(states)} failed. Its own "
            "log says why. Start the script again on all machines: training goes on from the last "
            "checkpoint."
        )


def check_even_data(states: np.ndarray) -> None:
    """Raises ValueError where some machines had data left when that of others ended."""
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
    """Raises NotImplementedError where a hook feeds a step that all machines make together."""
    for tensor, _ in feeds:
        raise NotImplementedError(
            f"A hook feeds {tensor.name!r} in a step of several machines, which is not "
            "supported. Put the value in a variable, and assign it in before_run."
        )
