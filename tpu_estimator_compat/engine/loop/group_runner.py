"""The base of runners on several machines: implements the protocol of `cluster/group.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.cluster.group import (
    AT_THE_END,
    AT_THE_START,
    BEFORE_A_STEP,
    Group,
    State,
    check_even_data,
    check_none_failed,
)
from tpu_estimator_compat.engine.loop.runner import Runner

AGroup = TypeVar("AGroup", bound=Group)


class GroupRunner(Runner, Generic[AGroup]):
    """The base of a `Runner` on one of several machines. Call `leave` or `fail` at the end."""

    def __init__(self, group: AGroup):
        self._group = group
        self._started = False
        self._owes_step = False  # whether this machine agreed to a step that it has not begun
        self._server: Callable[..., Any] | None = None

    def _connected(self) -> contextlib.AbstractContextManager[None]:
        """A context that raises MachineLostError where the connection to another machine breaks."""
        raise NotImplementedError

    @property
    def _place(self) -> str:
        if not self._started:
            return AT_THE_START
        return BEFORE_A_STEP if self.states is None else AT_THE_END

    def _serve(self, server: Callable[..., Any]) -> None:
        """Lets `server` answer the requests of other machines until this machine leaves."""
        self._server = server
        self._group.servers.append(server)

    def _start(self, graph: str) -> None:
        """Meets the other machines at the start; raises ValueError where their graphs differ."""
        self._meet(State.READY)
        self._started = True
        self._group.check_same(graph)

    def _meet(self, state: State) -> None:
        states = self._group.meet(state, self._place)
        if State.FAILED in states:
            self.states = states  # all machines know: `fail` need not tell them
        check_none_failed(states)

    def _agree(self, states: np.ndarray) -> bool:
        """Whether all machines make the next step; keeps the states where they do not."""
        if states.any():
            self.states = states
        return not states.any()

    def _ask(self) -> None:
        """Asks the waiting machines to answer; raises MachineLostError where one has failed."""
        with self._connected():
            if self.states is not None:
                check_none_failed(self.states)
            self._meet(State.ASKING)

    def leave(self) -> None:
        """Waits until all machines have stopped and have written their files; see `Runner`."""
        try:
            with self._connected():
                self._leave()
        finally:
            self._serve_no_more()

    def _leave(self) -> None:
        if self.states is None:
            self.states = self._group.meet(State.LEAVING, self._place)
        elif (left := np.flatnonzero(self.states == State.LEAVING)).size:
            logging.info(
                "Training stops here because machine %d of %d stopped.", left[0], self._group.count
            )
        stopped = self.states
        check_none_failed(stopped)
        self._meet(State.READY)
        check_even_data(stopped)

    def fail(self) -> None:
        if self.states is None or State.FAILED not in self.states:
            self._group.fail(self._place, owes_step=self._owes_step)
        self._serve_no_more()

    def _serve_no_more(self) -> None:
        if self._server in self._group.servers:
            self._group.servers.remove(self._server)
