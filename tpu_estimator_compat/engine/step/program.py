"""One step on TensorFlow's replicas, put together from its parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.capture.capture import Structure
from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.functions.traces import Contents, Handles, Holder
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step import cut as step_cut
from tpu_estimator_compat.engine.step.cut import StepParts
from tpu_estimator_compat.engine.step.device_part import DevicePart, kind_of
from tpu_estimator_compat.engine.step.host_calls import HostCalls
from tpu_estimator_compat.engine.step.host_part import HostPart
from tpu_estimator_compat.engine.step.host_queue import HostCallQueue, queue_for
from tpu_estimator_compat.engine.step.host_stage_program import HostStageProgram
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.tf_internals import distribute_utils


@dataclasses.dataclass(frozen=True, eq=False)
class StepProgram:
    """A callable that builds one step into the tf.function under construction."""

    parts: StepParts
    store: VariableStore
    stage: HostStageProgram | None
    device: DevicePart
    host: HostPart
    host_calls: HostCalls

    @property
    def fetches(self) -> Sequence[tf.Tensor]:
        return self.parts.plan.fetches

    @property
    def queue(self) -> HostCallQueue | None:
        """The queue of the host calls; None where steps make their calls from the start."""
        return self.host_calls.queue

    @property
    def trains(self) -> bool:
        return self.parts.plan.trains

    @property
    def loss_dtype(self) -> tf.DType:
        assert self.parts.plan.loss is not None  # only steps with a loss run in loops
        return self.parts.plan.loss.dtype

    @property
    def counter(self) -> tf.Variable | None:
        """The global step."""
        return self.store.global_step(self.parts.plan.graph)

    @property
    def replicas(self) -> int:
        return self.store.strategy.num_replicas_in_sync

    @property
    def may_run_on_one_thread(self) -> bool:
        """Whether one replica runs the step, without XLA and calls of functions."""
        flat = self.replicas == 1 and self.device.is_plain and not self.has_branches
        return flat and environment.allows_single_threaded_executor()

    @property
    def has_branches(self) -> bool:
        """Whether the step calls functions: branches, bodies of loops."""
        calls = () if self.queue else self.host_calls.part.program.ops
        ops = [*self.device.program.ops, *self.host.program.ops, *calls]
        return self.host_calls.every is not None or any(map(graph_ops.calls_functions, ops))

    @property
    def size(self) -> int:
        """The number of operations of the captured graph in the step."""
        parts = self.device, self.host, self.host_calls.part
        return sum(len(part.program.ops) for part in parts)

    def exchanges(self) -> set[str]:
        own = self.device.exchanges()
        if self.stage is None or self.parts.plan.same_on_all_replicas:
            return own
        return own | self.stage.exchanges

    def shared_variables(self) -> list[str]:
        """Names of the variables of the replicas and of the host stage.

        Each machine has a copy of a host stage's variable, or its own rows of a sharded one. All
        copies get the same updates.
        """
        handles = list(self.device.program.handles)
        if self.stage:
            plan, parts = self.parts.plan, self.parts.without_host_calls()
            host = HostPart(plan.graph, parts.host, self.store)
            handles += [*self.stage.handles, *host.program.handles]
        names = dict.fromkeys(op.name for op in handles)
        return [name for name in names if name in self.store]

    def contents(self) -> Contents | None:
        """The contents of a function of this step; None if it must not share a trace."""
        keys = [self.device.cache_key(), self.host.cache_key, self.host_calls.cache_key()]
        if None in keys:
            return None
        pairs = self.parts.transfers.pairs.values()
        fetches = tuple(t.name for t in self.fetches)
        signature = (*keys, fetches, tuple((p.name, t.name) for p, t in pairs))
        holders: list[Holder] = [self.store, Handles(self.host_calls.handles())]
        if self.device.streams is not None:
            holders.append(self.device.streams)
        return Contents(signature, holders)

    @tf.autograph.experimental.do_not_convert
    def on_replica(self, data: Structure, *fed: tf.Tensor) -> list[tf.Tensor]:
        """The device part of one replica, in replica context; see `DevicePart.on_replica`.

        Raises NotImplementedError where the host part updates variables of a host stage.
        """
        if self.stage is None:
            return self.device.on_replica(data, *fed)
        if self.stage.results:
            names = ", ".join(op.name for op in self.stage.handles)
            raise NotImplementedError(
                f"A replica alone cannot train {names}: the host updates them after all "
                "replicas. Train with fit(), without a make_train_function of your own."
            )
        values = self.stage.of_one(self.device.flat(data), self.store.host_handle)
        return self.device.on_replica(values, *fed)

    def __call__(self, data: Structure, *fed: tf.Tensor) -> list[tf.Tensor]:
        """Builds one step; returns one tensor per fetch.

        `data` is the input element, or one per replica as the strategy distributes it; `fed` are
        the fed tensors' values, the same for all replicas.
        """
        arrived = tf.nest.flatten(data, expand_composites=True)
        data, of_stage = self._stage_before(data)
        found, sent = self.device(data, fed)
        taken = {**sent, **of_stage}
        given = {k: taken[key(t)] for k, (_, t) in self.parts.transfers.pairs.items()}
        given |= {key(t): v for t, v in zip(self.parts.fed, fed, strict=True)}
        with tf.control_dependencies(arrived):  # a host part may read nothing of the data
            after = [tf.no_op()]
        found |= self.host(given, after)
        self.host_calls(given, after)
        return [found[key(t)] for t in self.fetches]

    def _stage_before(self, data: Structure) -> tuple[Structure, dict[Key, tf.Tensor]]:
        """The input of the replicas, and the stage's results for the host, over all replicas."""
        if self.stage is None:
            return data, {}
        strategy = self.store.strategy
        group = workers.of(strategy)
        replicas = strategy.num_replicas_in_sync // (group.count if group else 1)
        elements = [distribute_utils.select_replica(i, data) for i in range(replicas)]
        return self.stage([self.device.flat(each) for each in elements], self.store.host_handle)


def build_step(
    plan: StepPlan,
    store: VariableStore,
    *,
    fed: Sequence[tf.Tensor] = (),
    queued: bool = False,
    step_in_loop: tf.Variable | None = None,
    streams: RandomStreams | None = None,
) -> StepProgram:
    """Builds the step of a plan on the replicas of `store`, and creates its variables there.

    Args:
      fed: tensors whose values the caller gives with every step.
      queued: whether host calls may go through a queue; see `queue_for`.
      step_in_loop: counts the steps of a loop on the host; None where every step makes its host
        calls.
      streams: of the replicas' random ops; None where each function has its own streams.
    """
    group, kind = workers.of(store.strategy), kind_of(plan, store)
    one = store.strategy.num_replicas_in_sync == 1
    parts = step_cut.cut(
        plan,
        fed,
        one_replica=one,
        one_program=one and kind.is_plain,
        apart=plan.host_calls if queued or plan.host_calls_every > 1 else frozenset(),
    )
    if group and not group.is_chief:  # only the chief writes events
        parts = parts.without_host_calls()
    device = kind(parts, store, streams)
    stage = None
    if plan.host_stage:
        stage = HostStageProgram(plan, device.feeds, parts.transfers.from_stage, group)
        trainable = plan.trainable_names()
        store.prepare(stage.handles, replicated=False, trainable=trainable)
    device.prepare()
    host = HostPart(plan.graph, parts.host, store)
    called = HostPart(plan.graph, parts.host_calls, store)
    store.prepare([*host.program.handles, *called.program.handles], replicated=False)
    queue = None
    if queued and not (group or fed):
        others = [*device.program.handles, *host.program.handles]
        queue = queue_for(called.program, store, others)
    calls = HostCalls(called, queue, step_in_loop, plan.host_calls_every)
    return StepProgram(parts, store, stage, device, host, calls)
