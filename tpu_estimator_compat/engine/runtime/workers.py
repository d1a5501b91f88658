"""Exchanges among the machines of a MultiWorkerMirroredStrategy, matched by name.

TensorFlow matches the collective ops of different machines by numbers that count how many a process
has built. That holds only while all machines build and run the very same functions in the same
order. Here they need not: the chief alone writes summaries, loops may have different lengths. So
every exchange is numbered by its name, which is the same everywhere because the graph is.

An op's position in a loop is part of what is matched, too. So whatever exchanges must run in a
function of its own: see `isolated`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.runtime import eager, functions, op_errors
from tpu_estimator_compat.tf_internals import CollectiveAllReduceExtended, collective_ops

# TensorFlow counts its own groups from 1.
_REPLICAS_GROUP = 1 << 20
_HOSTS_GROUP = 1 << 21
_PAIRS_GROUP = 1 << 22
_LONGEST_FAREWELL = 60.0  # seconds


class State(enum.IntEnum):
    """The state that a machine tells the others before a step."""

    READY = 0
    OUT_OF_DATA = 1
    LEAVING = 2
    FAILED = 3
    SAVING = 4  # the chief alone, which wants the others' rows of shared variables


class MachineLostError(RuntimeError):
    """Another machine of the cluster failed, or cannot be reached any more."""


@dataclasses.dataclass(frozen=True)
class Workers:
    """The machines that run a step together, one process each.

    Attributes:
      count: the number of members.
      index: the number of this process among them; 0 is the chief.
      replicas: replicas on all of them together.
    """

    count: int
    index: int
    replicas: int

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints and events."""
        return self.index == 0

    def sum_over_replicas(self, values: Sequence[tf.Tensor], name: str) -> list[tf.Tensor]:
        """Sums over all replicas of all machines; call it on every replica.

        Args:
          values: tensors of shapes that are the same everywhere.
          name: of this exchange, the same everywhere.

        Returns:
          The sums. Values of one dtype travel together.
        """

        def summed(packed: tf.Tensor) -> tf.Tensor:
            return collective_ops.all_reduce_v2(
                packed,
                self.replicas,
                _REPLICAS_GROUP,
                _number(name, packed),
                merge_op="Add",
                final_op="Id",
            )

        return _packed(values, summed)

    def sum_of_machines(self, values: Sequence[tf.Tensor], name: str) -> list[tf.Tensor]:
        """As `sum_over_replicas`, over the machines: call it once per machine, on the host."""
        return _packed(values, lambda packed: self._sum(packed, _number(name, packed)))

    def concatenate(self, value: tf.Tensor, name: str) -> tf.Tensor:
        """`value` of every replica, in their order, along dimension 0; call it on every replica.

        Args:
          value: a tensor of rank 1 or more, of the same shape everywhere.
          name: of this exchange, the same everywhere.

        Returns:
          A tensor of shape [replicas * batch, ...].
        """
        # There is no kernel for bools.
        sent = tf.cast(value, tf.int32) if value.dtype == tf.bool else value
        gathered = collective_ops.all_gather_v2(
            sent, self.replicas, _REPLICAS_GROUP, _number(name, sent)
        )
        return tf.cast(gathered, value.dtype)

    def concatenate_over_workers(self, value: tf.Tensor, name: str) -> tf.Tensor:
        """`value` of all machines, in their order, along dimension 0; once for each, on the host.

        Args:
          value: a tensor of rank 1, of any size on each machine.
          name: of this exchange, the same everywhere.
        """
        own = tf.size(value)
        sizes = own * tf.one_hot(self.index, self.count, dtype=tf.int32)
        sizes = self._sum(sizes, _number(f"sizes {name}", sizes))
        ends = tf.cumsum(sizes)
        before, total = ends[self.index] - own, ends[-1]
        # What travels under one number has one size for ever: here the next power of two.
        powers = tf.constant([2**i for i in range(31)])
        power = tf.searchsorted(powers, total[tf.newaxis])[0]
        sent = tf.pad(value, [[before, powers[power] - before - own]])
        number = (_number(name, sent) & ~31) + power
        return self._sum(sent, number)[:total]

    def from_chief(self, value: tf.Tensor, name: str) -> tf.Tensor:
        """The chief's `value`, on every machine; call it once per machine, on the host."""
        number = _number(name, value)
        if self.is_chief:
            return collective_ops.broadcast_send_v2(value, self.count, _HOSTS_GROUP, number)
        return collective_ops.broadcast_recv_v2(
            tf.shape(value), value.dtype, self.count, _HOSTS_GROUP, number
        )

    def send(self, value: tf.Tensor, name: str, machine: int) -> None:
        """Sends `value` to one machine, which calls `receive`; call it eagerly.

        Args:
          value: a tensor. One of both machines is the chief.
          name: of this exchange, the same on both.
          machine: the index of the other.
        """
        pair, number = self._pair(value, name, machine, machine)
        with tf.device("/cpu:0"):
            _sending()(value, tf.constant(pair), tf.constant(number))

    def receive(self, spec: tf.TensorSpec, name: str, machine: int) -> tf.Tensor:
        """The tensor, like `spec`, that one machine sends; for the others see `send`."""
        pair, number = self._pair(spec, name, machine, self.index)
        with tf.device("/cpu:0"):
            return _receiving(spec.dtype)(
                tf.constant(spec.shape.as_list()), tf.constant(pair), tf.constant(number)
            )

    def _pair(
        self, like: tf.Tensor | tf.TensorSpec, name: str, machine: int, receiver: int
    ) -> tuple[int, int]:
        """The group of this and another machine, and the number of what one sends to the other.

        TensorFlow remembers who sent first under a number: each direction has its own.
        """
        return _PAIRS_GROUP + max(self.index, machine), _number(f"{name} to {receiver}", like)

    def sum_over_workers(self, value: tf.Tensor, name: str) -> tf.Tensor:
        """`value` summed over the machines; call it once per machine, on the host."""

        return functions.function(lambda: self._sum(value, _number(name, value)))()

    def _sum(self, value: tf.Tensor, number: Any, *, timeout: float = 0) -> tf.Tensor:
        return collective_ops.all_reduce_v2(
            value,
            self.count,
            _HOSTS_GROUP,
            number,
            merge_op="Add",
            final_op="Id",
            timeout=timeout,
        )

    def tell(self, number: int, name: str) -> int:
        """The chief's `number`, on every machine."""
        with eager.eager_mode(), tf.device("/cpu:0"):
            return int(self.from_chief_now(tf.constant(number, tf.int64), name))

    def from_chief_now(self, value: tf.Tensor, name: str) -> tf.Tensor:
        """As `from_chief`; call it eagerly."""
        return functions.function(lambda: self.from_chief(value, name))()

    def check_same(self, text: str) -> None:
        """Raises ValueError where another machine calls this with another text."""
        number = tf.constant(_hash(text), tf.int32)
        theirs = functions.function(lambda: self.from_chief(number, "graph"))()
        same = bool(tf.equal(theirs, number))
        states = functions.function(self.states)(tf.constant(not same, tf.int32)).numpy()
        if states.any():
            others = [i for i, differs in enumerate(states) if differs]
            raise ValueError(
                f"model_fn built another graph on machine(s) {others} than on the chief. Variables "
                "and exchanges must have the same names in the same order everywhere: let neither "
                "depend on the task in TF_CONFIG."
            )

    def states(self, state: Any, name: str = "before a step", *, timeout: float = 0) -> tf.Tensor:
        """Tells all machines this one's `state`, and returns theirs; int32 of shape [count]."""
        own = tf.cast(state, tf.int32) * tf.one_hot(self.index, self.count, dtype=tf.int32)
        return self._sum(own, _number(f"states {name}", own), timeout=timeout)

    def meet(self, state: State, name: str = "before a step") -> np.ndarray:
        """The states of all machines, once each of them has come here with its own.

        Args:
          state: why this machine makes no further step.
          name: of the place to meet; by default, where a step would begin.
        """
        timeout = _LONGEST_FAREWELL if state == State.FAILED else 0
        with eager.eager_mode(), tf.device("/cpu:0"):
            return functions.function(lambda: self.states(state, name, timeout=timeout))().numpy()


def of(strategy: tf.distribute.Strategy) -> Workers | None:
    """The machines of `strategy`; None where it has but this one."""
    extended = strategy.extended  # of one class for TF1's strategy and TF2's
    if not isinstance(extended, CollectiveAllReduceExtended) or extended._num_workers == 1:
        return None
    return Workers(extended._num_workers, extended._id_in_cluster, strategy.num_replicas_in_sync)


def isolated(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` as a function that stays one, wherever it is called from."""
    return functions.function(call, experimental_attributes={"_noinline": True})


def lost(error: tf.errors.OpError, model_dir: str | None) -> MachineLostError:
    """The error to raise where an exchange broke down with `error`."""
    words = op_errors.words(error)
    found = re.search(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)", words)
    which = f", task {found[2]} of {found[1]} in TF_CONFIG" if found else ""
    saved = tf.train.latest_checkpoint(model_dir) if model_dir else None
    return MachineLostError(
        f"Another machine of the cluster failed or cannot be reached{which}; no step can be made "
        "without it. Look at its log, then start the script again on all machines: training goes "
        f"on from {saved or f'the last checkpoint in {model_dir}'}. TensorFlow says: {words}"
    )


def check_states(states: np.ndarray) -> None:
    """Raises MachineLostError where one of the machines failed."""
    failed = [i for i, state in enumerate(states) if state == State.FAILED]
    if failed:
        raise MachineLostError(
            f"This machine stopped because machine {failed[0]} of {len(states)} failed. Its own "
            "log says why. Start the script again on all machines: training goes on from the last "
            "checkpoint."
        )


def check_even_data(states: np.ndarray) -> None:
    """Raises ValueError where some machines had data left when that of others ended."""
    ended = [i for i, state in enumerate(states) if state == State.OUT_OF_DATA]
    going_on = [i for i, state in enumerate(states) if state == State.READY]
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


@functools.cache
def _sending() -> Callable[..., Any]:
    """One function for all that is sent: it is traced once."""

    def send(value: tf.Tensor, pair: tf.Tensor, number: tf.Tensor) -> None:
        collective_ops.broadcast_send_v2(value, 2, pair, number)

    return functions.function(send, reduce_retracing=True)


@functools.cache
def _receiving(dtype: tf.DType) -> Callable[..., Any]:
    """One function for all that is received of a dtype."""

    def receive(shape: tf.Tensor, pair: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
        return collective_ops.broadcast_recv_v2(shape, dtype, 2, pair, number)

    return functions.function(receive)


def _packed(
    values: Sequence[tf.Tensor], exchange: Callable[[tf.Tensor], tf.Tensor]
) -> list[tf.Tensor]:
    """The results of `exchange` on the values, packed into one vector for each dtype."""
    exchanged: list[Any] = [None] * len(values)
    for dtype in dict.fromkeys(v.dtype for v in values):
        places = [i for i, v in enumerate(values) if v.dtype == dtype]
        whole = exchange(tf.concat([tf.reshape(values[i], [-1]) for i in places], axis=0))
        sizes = [tf.size(values[i]) for i in places]
        for i, part in zip(places, tf.split(whole, sizes, num=len(places)), strict=True):
            exchanged[i] = tf.reshape(part, tf.shape(values[i]))
            exchanged[i].set_shape(values[i].shape)
    return exchanged


def _number(name: str, value: tf.Tensor | tf.TensorSpec) -> int:
    """A number for an exchange of `value`, the same in every process.

    TensorFlow remembers what it first saw under a number: graphs of other modes or batch sizes may
    use the same names for other things.
    """
    return _hash(f"{name} {value.dtype.name} {value.shape}")


def _hash(text: str) -> int:
    return zlib.crc32(text.encode()) & 0x7FFFFFFF
