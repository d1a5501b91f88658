"""Exchanges among the machines of a MultiWorkerMirroredStrategy, matched by name.

TensorFlow numbers collective ops in the order in which a process builds them, and matches them
across machines by number: all machines would have to build and run the same functions in the same
order. Here they do not: only the chief writes summaries, and loops may differ in length. So the
number of an exchange is a hash of its name, which is the same on all machines.

The match also includes an op's position in a loop. So exchanges run in functions of their own: see
`isolated`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.cluster.group import (
    BEFORE_A_STEP,
    CHIEF,
    Group,
    MachineLostError,
    State,
)
from tpu_estimator_compat.engine.functions import eager, functions, op_errors
from tpu_estimator_compat.tf_internals import CollectiveAllReduceExtended, collective_ops

# Keys of groups, far from TensorFlow's keys, which begin at 1.
_REPLICAS_GROUP = 1 << 20
_HOSTS_GROUP = 1 << 21
_PAIRS_GROUP = 1 << 22
_LONGEST_FAREWELL = 60.0  # seconds


@dataclasses.dataclass(frozen=True)
class Workers(Group):
    """The machines of a MultiWorkerMirroredStrategy; all use the same `name` for an exchange."""

    count: int
    index: int
    replicas: int  # of all machines
    servers: list[Callable[[], None]] = dataclasses.field(default_factory=list, compare=False)

    def sum_over_replicas(self, values: Sequence[tf.Tensor], name: str) -> list[tf.Tensor]:
        """Sums of values of the same shapes over all replicas; call it on every replica."""

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
        """Sums over the machines; call it once per machine, on the host."""
        return _packed(values, lambda packed: self._sum(packed, _number(name, packed)))

    def concatenate(self, value: tf.Tensor, name: str) -> tf.Tensor:
        """The values of all replicas, concatenated on axis 0; call it on every replica."""
        # There is no kernel for bools.
        sent = tf.cast(value, tf.int32) if value.dtype == tf.bool else value
        gathered = collective_ops.all_gather_v2(
            sent, self.replicas, _REPLICAS_GROUP, _number(name, sent)
        )
        return tf.cast(gathered, value.dtype)

    def concatenate_over_workers(self, value: tf.Tensor, name: str) -> tf.Tensor:
        """The machines' vectors, of any sizes, as one; call it once per machine, on the host."""
        own = tf.size(value)
        sizes = self._of_all(own, f"sizes {name}")
        ends = tf.cumsum(sizes)
        before, total = ends[self.index] - own, ends[-1]
        # TensorFlow wants one size per number: pad to a power of two, which alters the number.
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
        """Sends `value` eagerly to `machine`, which calls `receive`; one of both is the chief."""
        pair, number = self._pair(value, name, machine, machine)
        with tf.device("/cpu:0"):
            _sending()(value, tf.constant(pair), tf.constant(number))

    def receive(self, spec: tf.TensorSpec, name: str, machine: int) -> tf.Tensor:
        """Receives a tensor like `spec` from `machine`, which calls `send`."""
        pair, number = self._pair(spec, name, machine, self.index)
        with tf.device("/cpu:0"):
            return _receiving(spec.dtype)(
                tf.constant(spec.shape.as_list()), tf.constant(pair), tf.constant(number)
            )

    def _pair(
        self, like: tf.Tensor | tf.TensorSpec, name: str, machine: int, receiver: int
    ) -> tuple[int, int]:
        """The key of two machines' group, and the number of an exchange from one to the other.

        TensorFlow remembers the first sender of a number, so each direction has its own number.
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

    def from_chief_now(self, value: tf.Tensor, name: str) -> tf.Tensor:
        return functions.function(lambda: self.from_chief(value, name))()

    def numbers(self, number: int, name: str) -> np.ndarray:
        with eager.eager_mode(), tf.device("/cpu:0"):
            own = tf.constant(number, tf.int64)
            return functions.function(lambda: self._of_all(own, f"number {name}"))().numpy()

    def states(self, state: Any, place: str = BEFORE_A_STEP, *, timeout: float = 0) -> tf.Tensor:
        """A tensor of all machines' states, int32 [count]; serves no machine."""
        return self._of_all(tf.cast(state, tf.int32), f"states {place}", timeout=timeout)

    def _of_all(self, own: tf.Tensor, name: str, *, timeout: float = 0) -> tf.Tensor:
        vector = own * tf.one_hot(self.index, self.count, dtype=own.dtype)
        return self._sum(vector, _number(name, vector), timeout=timeout)

    def meet(self, state: State, place: str = BEFORE_A_STEP) -> np.ndarray:
        return self.served(self._meet_once(state, place), state, place)

    def _meet_once(self, state: State, place: str, *, timeout: float = 0) -> np.ndarray:
        with eager.eager_mode(), tf.device("/cpu:0"):
            return functions.function(lambda: self.states(state, place, timeout=timeout))().numpy()

    def served(self, states: np.ndarray, state: State, place: str = BEFORE_A_STEP) -> np.ndarray:
        """Serves the chief while it asks; here no other machine asks. Returns the last states."""
        while self.servers and states[CHIEF] == State.ASKING and State.FAILED not in states:
            self.servers[-1]()
            states = self._meet_once(state, place)
        return states

    def fail(self, place: str, *, owes_step: bool = False) -> None:
        # TensorFlow aborts the others' step. An error here would hide this machine's first error.
        with contextlib.suppress(tf.errors.OpError):
            self._meet_once(State.FAILED, place, timeout=_LONGEST_FAREWELL)


def of(strategy: tf.distribute.Strategy) -> Workers | None:
    """The machines of `strategy`; None where this is the only one."""
    extended = strategy.extended  # TF1's strategy and TF2's have the same class
    if not isinstance(extended, CollectiveAllReduceExtended) or extended._num_workers == 1:
        return None
    return Workers(extended._num_workers, extended._id_in_cluster, strategy.num_replicas_in_sync)


def isolated(call: Callable[..., Any]) -> Callable[..., Any]:
    return functions.function(call, experimental_attributes={"_noinline": True})


def lost(error: tf.errors.OpError, model_dir: str | None) -> MachineLostError:
    """The MachineLostError to raise where an exchange raised `error`."""
    words = op_errors.words(error)
    found = re.search(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)", words)
    which = f", task {found[2]} of {found[1]} in TF_CONFIG" if found else ""
    saved = tf.train.latest_checkpoint(model_dir) if model_dir else None
    return MachineLostError(
        f"Another machine of the cluster failed or cannot be reached{which}; no step can be made "
        "without it. Look at its log, then start the script again on all machines: training goes "
        f"on from {saved or f'the last checkpoint in {model_dir}'}. TensorFlow says: {words}"
    )


@functools.cache
def _sending() -> Callable[..., Any]:
    def send(value: tf.Tensor, pair: tf.Tensor, number: tf.Tensor) -> None:
        collective_ops.broadcast_send_v2(value, 2, pair, number)

    return functions.function(send, reduce_retracing=True)


@functools.cache
def _receiving(dtype: tf.DType) -> Callable[..., Any]:
    def receive(shape: tf.Tensor, pair: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
        return collective_ops.broadcast_recv_v2(shape, dtype, 2, pair, number)

    return functions.function(receive)


def _packed(
    values: Sequence[tf.Tensor], exchange: Callable[[tf.Tensor], tf.Tensor]
) -> list[tf.Tensor]:
    """The results of `exchange`, which is called on one vector for each dtype."""
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
    """The number of an exchange of `value`, the same in every process.

    TensorFlow remembers a number's first dtype and shape; under the same name, graphs of other
    modes or batch sizes may have others.
    """
    return zlib.crc32(f"{name} {value.dtype.name} {value.shape}".encode()) & 0x7FFFFFFF
