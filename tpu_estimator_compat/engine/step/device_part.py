"""The device part of a step, which each replica runs: plain, compiled by XLA, or on a TPU."""

from __future__ import annotations

import functools
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture.capture import Structure, check_element, plain_element
from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.functions import functions, placement
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step import cut as step_cut
from tpu_estimator_compat.engine.step import replicated_ops
from tpu_estimator_compat.engine.step.cut import Part, StepParts
from tpu_estimator_compat.engine.step.joining import JoinReplicas
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


class DevicePart:
    """The device part, as a plain function of each replica.

    Attributes:
      program: the operations of one replica.
      feeds: the tensors of the element that it takes, without the tensors fed by the caller.
      streams: of its random ops; None where each function has its own streams, as compiled ones do.
    """

    is_plain = True  # one program can run a sole replica and the host part
    native_collectives = False  # True: one program runs on all devices, with their collectives

    def __init__(self, parts: StepParts, store: VariableStore, streams: RandomStreams | None):
        self._plan, self._parts, self._store = parts.plan, parts, store
        self._strategy = store.strategy
        self._join = JoinReplicas(parts.plan, store.strategy)
        self.streams = streams if self.is_plain else None
        part, self._results = self._cut()
        self.feeds = part.feeds[: len(part.feeds) - len(parts.fed)]
        self.program = ReplicaProgram(
            parts.plan.graph,
            part.feeds,
            part.fetches,
            part.targets,
            replicas=self._strategy.num_replicas_in_sync,
            rewrites={} if self.native_collectives else None,
            reads_first=True,
            # An iterator gives all feeds at once.
            waits_for=parts.plan.made_of or self.feeds[:1],
        )

    def _cut(self) -> tuple[Part, list[tf.Tensor]]:
        """The part that each replica runs, and its fetches without the tensors for the host."""
        return self._parts.device, self._parts.own

    def prepare(self) -> None:
        """Creates the variables that the replicas use, one component per replica.

        A variable that belongs to one replica is created once, on the host.
        """
        owned = replicated_ops.owned(
            self.program.ops,
            self._strategy.num_replicas_in_sync,
            compiled=self.native_collectives,
            alone=workers.of(self._strategy) is None,
        )
        self._store.prepare(owned, replicated=False)
        trainable = self._plan.trainable_names()
        self._store.prepare(self.program.handles, replicated=True, trainable=trainable)

    def exchanges(self) -> set[str]:
        sums = {op.name for stage in self.program.stages for op in stage.collectives}
        return sums | self._join.exchanges(self._parts.transfers.from_replicas)

    def cache_key(self) -> Hashable | None:
        """The key that device parts with the same computation share; None where none shares it.

        With several replicas, on a TPU, or with a host stage, each function is traced anew.
        """
        if self._plan.host_stage or self._signature is None:
            return None
        return (
            type(self).__name__,
            self._signature,
            (type(self._strategy).__name__, *placement.devices(self._strategy)),
            self.streams is None,
            repr(self._plan.element_spec),
            tuple(t.name for t in self._results),
            tuple(t.name for t in self._parts.transfers.from_replicas),
            tuple((t.name, repr(t.shape)) for t in self._parts.fed),
        )

    @functools.cached_property
    def _signature(self) -> Hashable | None:
        return self.program.signature(self.streams)

    def flat(self, data: Structure) -> list[tf.Tensor]:
        """The flat tensors of one replica's element, checked against the plan's `element_spec`."""
        data = plain_element(data)
        check_element(data, self._plan.element_spec)
        return tf.nest.flatten(data, expand_composites=True)

    @tf.autograph.experimental.do_not_convert
    def on_replica(self, data: Structure, *fed: tf.Tensor) -> list[tf.Tensor]:
        """Builds the part of one replica; called in replica context.

        `data` is the replica's element; with a host stage, the values of `feeds`. Returns the
        replica's fetches, then the tensors that the host takes.
        """
        values = data if self._plan.host_stage else self.flat(data)
        with tf.device(placement.common_device(self._strategy) or ""):  # "" keeps the device
            outputs = self.program(
                [*self._placed(values), *fed], self._store.replica_handle, self.streams
            )
        by_key = dict(zip(map(key, self.program.fetches), outputs, strict=True))
        own = [by_key[key(t)] for t in self._results]
        sent = self._parts.transfers.from_replicas
        return own + [self._join.sent(t, by_key[key(t)]) for t in sent]

    def _placed(self, values: list[tf.Tensor]) -> list[tf.Tensor]:
        return values

    @functools.cached_property
    def _step(self) -> Any:
        return self.on_replica

    def __call__(
        self, data: Structure, fed: Sequence[tf.Tensor]
    ) -> tuple[dict[Key, tf.Tensor], dict[Key, tf.Tensor]]:
        """Builds the part of all replicas, from their `data` as the strategy distributes it.

        Returns the first replica's values of their fetches, and the values that the host takes.
        """
        outputs = self._strategy.run(self._step, args=(data, *fed))
        firsts = [self._strategy.experimental_local_results(value)[0] for value in outputs]
        values = dict(zip(map(key, self._results), firsts, strict=False))
        sent = zip(
            map(key, self._parts.transfers.from_replicas),
            outputs[len(self._results) :],
            strict=True,
        )
        return values, {k: self._join.on_host(value) for k, value in sent}


class XlaDevicePart(DevicePart):
    """The device part, compiled by XLA, with XLA's own random numbers."""

    is_plain = False

    @functools.cached_property
    def _step(self) -> Any:
        return functions.function(self.on_replica, jit_compile=True)


class TpuDevicePart(DevicePart):
    """The device part on a TPU: cores exchange values themselves; the host computes strings."""

    is_plain = False
    native_collectives = True

    def __init__(self, parts: StepParts, store: VariableStore, streams: RandomStreams | None):
        fed = [*parts.plan.replica_feeds, *parts.fed]
        self._strings = _host_program(parts.plan.graph, parts.own, fed)
        super().__init__(parts, store, streams)

    def _cut(self) -> tuple[Part, list[tf.Tensor]]:
        parts = self._parts
        own = _left_to_replicas(parts.own, self._strings)
        fetches = [*own, *parts.transfers.from_replicas]
        return step_cut.device_part(parts.plan, parts.fed, fetches, parts.device.targets), own

    def prepare(self) -> None:
        self._store.prepare(self._strings.handles, replicated=False)
        super().prepare()

    def _placed(self, values: list[tf.Tensor]) -> list[tf.Tensor]:
        """Splits a replica's tensors over the cores that share it; None replicates a tensor."""
        if not self._plan.partition:
            return values
        return [
            self._strategy.experimental_replicate_to_logical_devices(value)
            if counts is None
            else self._strategy.experimental_split_to_logical_devices(value, list(counts))
            for value, counts in zip(values, self._plan.partition, strict=True)
        ]

    def __call__(
        self, data: Structure, fed: Sequence[tf.Tensor]
    ) -> tuple[dict[Key, tf.Tensor], dict[Key, tf.Tensor]]:
        """See `DevicePart`. Strings are computed from the first replica's values."""
        values, sent = super().__call__(data, fed)
        strings = self._strings
        firsts = [values[key(t)] for t in strings.feeds]
        made = strings(firsts, self._store.host_handle) if strings.fetches else []
        return values | dict(zip(map(key, strings.fetches), made, strict=True)), sent


def kind_of(plan: StepPlan, store: VariableStore) -> type[DevicePart]:
    """The class of the device part for a plan on the devices of `store`."""
    if store.on_tpu:  # TPUs compile all that they run
        return TpuDevicePart
    return XlaDevicePart if plan.jit_compile else DevicePart


def _host_program(
    graph: tf.Graph, fetches: Sequence[tf.Tensor], fed: Sequence[tf.Tensor]
) -> ReplicaProgram:
    """The host's program for the device part's fetches that depend on strings.

    Its feeds are the tensors from which the strings are made; `fed` come from outside the step.
    """
    stops = {key(t) for t in fed}
    on_host = _made_of_strings(fetches, stops)
    own = [t for t in fetches if t.op in on_host]
    needed = graph_ops.ancestors([t.op for t in own], stops) & on_host
    ops = graph_ops.in_creation_order(needed)
    feeds = {key(t): t for op in ops for t in op.inputs if t.op not in on_host}
    return ReplicaProgram(graph, list(feeds.values()), own)


def _left_to_replicas(fetches: Sequence[tf.Tensor], program: ReplicaProgram) -> list[tf.Tensor]:
    """The tensors that a replica returns for `fetches`, where the host runs `program`."""
    late = set(map(key, program.fetches))
    return graph_ops.distinct([*(t for t in fetches if key(t) not in late), *program.feeds])


def _made_of_strings(fetches: Sequence[tf.Tensor], stops: Collection[Key]) -> set[tf.Operation]:
    """Ops with string inputs or outputs, and all ops that depend on them."""
    ops = graph_ops.ancestors([t.op for t in fetches if key(t) not in stops], stops)
    found: set[tf.Operation] = set()
    for op in graph_ops.in_creation_order(ops):
        strings = any(t.dtype == tf.string for t in (*op.inputs, *op.outputs))
        if strings or any(t.op in found for t in op.inputs):
            found.add(op)
    return found
