"""One step on TensorFlow's replicas: their share, the exchange, then the host's share."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.capture.capture import Structure, check_element, plain_element
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.runtime import functions, placement, workers
from tpu_estimator_compat.engine.runtime.traces import Contents, Handles, Holder, Name
from tpu_estimator_compat.engine.runtime.tuning import DEFAULTS, Tuning
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step import cut as step_cut
from tpu_estimator_compat.engine.step import partition, replicated_ops, string_ops
from tpu_estimator_compat.engine.step.host_queue import HostCallQueue, capacity_for
from tpu_estimator_compat.engine.step.host_stage_program import HostStageProgram
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram
from tpu_estimator_compat.tf_internals import distribute_lib, distribute_utils


class StepProgram:
    """A callable that builds one step into the tf.function under construction.

    Args:
      plan: the computation of a step.
      store: its live variables; those that this step needs are created here.
      fed: tensors whose values the caller gives with every step.
      main: the program that the other workers may run instead of this one, where there are others.
      queued: leave host calls to a queue, where their effects are their own.
      step_in_loop: counts the steps of a loop on the host; None where every step makes its host
        calls.
      streams: of the replicas' random ops; None where every function has streams of its own.
      tuning: see `HostCallQueue`.

    Attributes:
      queue: the host calls that wait; None where they are a part of their step from the first.

    Raises:
      NotImplementedError: several workers, and this program exchanges what `main` does not.
    """

    def __init__(
        self,
        plan: StepPlan,
        store: VariableStore,
        *,
        fed: Sequence[tf.Tensor] = (),
        main: StepProgram | None = None,
        queued: bool = False,
        step_in_loop: tf.Variable | None = None,
        streams: RandomStreams | None = None,
        tuning: Tuning = DEFAULTS,
    ):
        self.plan, self.store, self.strategy = plan, store, store.strategy
        self.workers = workers.of(store.strategy)
        self.fetches = list(plan.fetches)
        self._on_tpu = on_tpu = store.on_tpu
        self._jit_compile = jit_compile = plan.jit_compile and not on_tpu  # it compiles anyway
        self._streams = None if on_tpu or jit_compile else streams  # XLA has other numbers
        one = self.strategy.num_replicas_in_sync == 1
        self._cut = step_cut.cut(
            plan,
            fed,
            one_replica=one,
            one_program=one and not (on_tpu or jit_compile),
            apart=plan.host_calls if queued or plan.host_calls_every > 1 else frozenset(),
        )
        host, calls = self._cut.host, self._cut.calls
        if self.workers and not self.workers.is_chief:  # it writes no events, and is fed the same
            host, calls = host.without(plan.host_calls), calls.without(plan.host_calls)
        self._host, self._calls = self._host_program(host), self._host_program(calls)
        self._strings = self._string_program() if on_tpu else None
        self._own = string_ops.left_to_replicas(self._cut.own, self._strings)
        share = self._cut.of_replicas([*self._own, *self._cut.from_replicas])
        self._feeds = share.feeds[: len(share.feeds) - len(fed)]
        self._replica = self._replica_program(share)
        self._stage = self._stage_program() if plan.host_stage else None
        if self.workers and main:
            self._check_exchanges(main)
        replicas = self.strategy.num_replicas_in_sync
        own = replicated_ops.owned(
            self._replica.ops, replicas, compiled=on_tpu, alone=self.workers is None
        )
        store.prepare(own, replicated=False)  # its replica sees it there, and so does the host
        store.prepare(self._replica.handles, replicated=True, trainable=plan.trainable_names())
        store.prepare([*self._host.handles, *self._calls.handles], replicated=False)
        self._step_in_loop = step_in_loop if self._calls.targets else None
        self.queue = self._queue(tuning) if queued else None
        step = self._on_replica if self._stage else self.on_replica
        self._step = functions.function(step, jit_compile=True) if jit_compile else step

    def _replica_program(self, share: step_cut.Share) -> ReplicaProgram:
        return ReplicaProgram(
            self.plan.graph,
            share.feeds,
            share.fetches,
            share.targets,
            replicas=self.strategy.num_replicas_in_sync,
            native_collectives=self._on_tpu,
            reads_first=True,
            # An iterator gives all feeds at once.
            waits_for=self.plan.made_of or self._feeds[:1],
        )

    def _stage_program(self) -> HostStageProgram:
        """The host stage of the plan, which has one."""
        stage = HostStageProgram(self.plan, self._feeds, self._cut.from_stage, self.workers)
        trainable = self.plan.trainable_names()
        self.store.prepare(stage.handles, replicated=False, trainable=trainable)
        return stage

    def _string_program(self) -> ReplicaProgram | None:
        """The host's program on tensors of a TPU's first replica; None if there are no strings."""
        program = string_ops.host_program(
            self.plan.graph, self._cut.own, [*self.plan.replica_feeds, *self._cut.fed]
        )
        self.store.prepare(program.handles, replicated=False)
        return program if program.fetches else None

    def _queue(self, tuning: Tuning) -> HostCallQueue | None:
        """A queue for the host calls, if nothing else sees what they do."""
        others = {*self._replica.handles, *self._host.handles}
        capacity = capacity_for(self._calls.feeds, tuning)
        if self.workers or self._cut.fed or not self._calls.targets or capacity is None:
            return None
        if others & set(self._calls.handles):
            return None
        return HostCallQueue(self._calls, self.store, capacity, tuning)

    def exchanges(self) -> set[str]:
        """Names of what replicas exchange in this step."""
        sums = {op.name for stage in self._replica.stages for op in stage.collectives}
        if self.plan.same_on_all_replicas:
            return sums
        before = self._stage.exchanges if self._stage else set()
        return sums | before | {f"over_replicas/{t.name}" for t in self._cut.from_replicas}

    def shared_variables(self) -> list[str]:
        """Names of the variables that every replica has one of, and of those of the host stage.

        Of the latter every machine has one, and all make the same updates; or its rows, where the
        plan says that they are sharded.
        """
        handles = list(self._replica.handles)
        if self._stage:
            host = self._host_program(self._cut.host.without(self.plan.host_calls))
            handles += [*self._stage.handles, *host.handles]
        names = dict.fromkeys(op.name for op in handles)
        return [name for name in names if name in self.store]

    def _check_exchanges(self, main: StepProgram) -> None:
        if more := sorted(self.exchanges() - main.exchanges()):
            raise NotImplementedError(
                f"A hook or a summary wants {', '.join(more)}, for which machines would have to "
                "exchange values that the step does not exchange. Let train_op depend on it, or "
                "look at it in host_call."
            )

    def _host_program(self, share: step_cut.Share) -> ReplicaProgram:
        """Fetches that ignore both input and replicas are read here too, after the replicas."""
        return ReplicaProgram(self.plan.graph, share.feeds, share.fetches, share.targets)

    @property
    def is_flat(self) -> bool:
        """Whether one replica runs it, with no functions (branches, loop bodies) in it."""
        one = self.strategy.num_replicas_in_sync == 1 and not self._jit_compile
        one = one and not self._on_tpu  # a core and its host
        return one and not self.has_branches

    @property
    def has_branches(self) -> bool:
        """Whether there are functions in it: branches, bodies of loops."""
        ops = [*self._replica.ops, *self._host.ops]
        ops += [] if self.queue else self._calls.ops
        # A branch for what does not run in every step:
        return self._step_in_loop is not None or any(map(graph_ops.calls_functions, ops))

    @property
    def size(self) -> int:
        """The number of operations of the captured graph that it runs."""
        return len(self._replica.ops) + len(self._host.ops) + len(self._calls.ops)

    def contents(self) -> Contents | None:
        """The contents of a function of this step; None where no other function may share them.

        Steps of several replicas, of a TPU, or with a host stage, are each traced for itself.
        """
        plan, queue = self.plan, self.queue
        if self.strategy.num_replicas_in_sync > 1 or self.workers or self._stage or self._on_tpu:
            return None
        if None in self._signatures:
            return None
        signature = (
            *self._signatures,
            repr(plan.element_spec),
            _devices(self.strategy),
            tuple((t.name, plan.is_loss(t)) for t in self.fetches),
            tuple(t.name for t in [*self._own, *self._cut.from_replicas]),
            tuple((p.name, t.name) for p, t in self._cut.sent.values()),
            tuple((t.name, repr(t.shape)) for t in self._cut.fed),
            self._jit_compile,
            self._streams is None,
            plan.host_calls_every if self._step_in_loop is not None else None,
            queue is None or queue.left,
        )
        own: dict[Name, tf.Tensor] = {}
        if self._step_in_loop is not None:
            own["step_in_loop"] = self._step_in_loop.handle
        if queue is not None and not queue.left:
            own["queue"] = queue.handle
        holders: list[Holder] = [self.store, Handles(own)]
        if self._streams is not None:
            holders.append(self._streams)
        return Contents(signature, holders)

    @functools.cached_property
    def _signatures(self) -> list[Hashable | None]:
        amended = [self._streams.amends] if self._streams else []
        shares = [self._host.signature(), self._calls.signature()]
        return [self._replica.signature(*amended), *shares]

    @tf.autograph.experimental.do_not_convert
    def on_replica(self, data: Structure, *fed: tf.Tensor) -> list[tf.Tensor]:
        """The computation of every replica, in replica context.

        Args:
          data: the replica's input element.
          *fed: values of the fed tensors.

        Returns:
          The replicas' share: fetches of theirs, then tensors that the host's share wants.

        Raises:
          NotImplementedError: the host's share updates variables of a host stage.
        """
        values = self._flat(data)
        if self._stage:
            if self._stage.results:
                names = ", ".join(op.name for op in self._stage.handles)
                raise NotImplementedError(
                    f"A replica alone cannot train {names}: the host updates them after all "
                    "replicas. Train with fit(), without a make_train_function of your own."
                )
            values = self._stage.of_one(values, self.store.host_handle)
        return self._on_replica(values, *fed)

    def _flat(self, data: Structure) -> list[tf.Tensor]:
        """The tensors of one replica's element, checked."""
        data = plain_element(data)
        check_element(data, self.plan.element_spec)
        return tf.nest.flatten(data, expand_composites=True)

    @tf.autograph.experimental.do_not_convert
    def _on_replica(self, values: list[tf.Tensor], *fed: tf.Tensor) -> list[tf.Tensor]:
        """The replicas' share, of values of its feeds."""
        if self.plan.partition and self._on_tpu:
            values = partition.place(values, self.plan.partition, self.strategy)
        with tf.device(placement.common_device(self.strategy) or ""):  # "": where they are
            outputs = self._replica([*values, *fed], self.store.replica_handle, self._streams)
        by_key = {key(t): v for t, v in zip(self._replica.fetches, outputs, strict=True)}
        own = [self._mean_over_workers(t, by_key[key(t)]) for t in self._own]
        return own + [self._over_workers(t, by_key[key(t)]) for t in self._cut.from_replicas]

    def _mean_over_workers(self, tensor: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        if self.workers is None or not self.plan.is_loss(tensor):
            return value
        [total] = self.workers.sum_over_replicas([value], f"mean/{tensor.name}")
        return total / tf.cast(self.workers.replicas, value.dtype)

    def _over_workers(self, tensor: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        if self.workers is None or self.plan.same_on_all_replicas:
            return value
        return self.workers.concatenate(value, f"over_replicas/{tensor.name}")

    def __call__(self, data: Structure, *fed: tf.Tensor) -> list[tf.Tensor]:
        """Runs one step.

        Args:
          data: the step's input element, or one per replica as the strategy distributes it.
          *fed: values of the fed tensors, the same for all replicas.

        Returns:
          One tensor per fetch.
        """
        data, of_stage = self._stage_before(data) if self._stage else (data, {})
        outputs = self.strategy.run(self._step, args=(data, *fed))
        values = {key(t): out for t, out in zip(self._own, outputs, strict=False)}
        sent = dict(zip(map(key, self._cut.from_replicas), outputs[len(self._own) :], strict=True))
        over_replicas = {k: self._over_replicas(v) for k, v in sent.items()} | of_stage
        fed_to_host = {k: over_replicas[key(t)] for k, (_, t) in self._cut.sent.items()}
        fed_to_host |= {key(t): v for t, v in zip(self._cut.fed, fed, strict=True)}
        host_values = self._host(
            [fed_to_host[key(p)] for p in self._host.feeds], self.store.host_handle
        )
        if self._calls.targets:
            self._call_host([fed_to_host[key(p)] for p in self._calls.feeds])
        on_host = {key(t): v for t, v in zip(self._host.fetches, host_values, strict=True)}
        if self._strings:
            firsts = [self._first(values[key(t)]) for t in self._strings.feeds]
            strings = self._strings(firsts, self.store.host_handle)
            on_host.update(zip(map(key, self._strings.fetches), strings, strict=True))
        return [
            on_host[key(t)] if key(t) in on_host else self._one(t, values[key(t)])
            for t in self.fetches
        ]

    def _stage_before(self, data: Structure) -> tuple[Structure, dict[Key, tf.Tensor]]:
        """The input of the replicas, and the stage's results for the host, over all replicas."""
        assert self._stage is not None
        replicas = self.strategy.num_replicas_in_sync // (self.workers.count if self.workers else 1)
        parts = [distribute_utils.select_replica(i, data) for i in range(replicas)]
        return self._stage([self._flat(part) for part in parts], self.store.host_handle)

    def _call_host(self, values: Sequence[tf.Tensor]) -> None:
        def call() -> tf.Tensor:
            if self.queue is not None and not self.queue.left:
                self.queue.put(values)
            else:
                self._calls(values, self.store.host_handle)
            return tf.constant(True)

        if self._step_in_loop is None:
            call()
            return
        due = tf.equal(self._step_in_loop % self.plan.host_calls_every, 0)
        tf.cond(due, call, lambda: tf.constant(False))
        self._step_in_loop.assign_add(1)

    def _over_replicas(self, value) -> tf.Tensor:
        parts = self.strategy.experimental_local_results(value)
        if len(parts) == 1 or self.workers or self.plan.same_on_all_replicas:
            return parts[0]
        return tf.concat(parts, axis=0)

    def _one(self, tensor: tf.Tensor, value) -> tf.Tensor:
        if self.plan.is_loss(tensor) and self.workers is None:
            return self.strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=None)
        return self._first(value)

    def _first(self, value) -> tf.Tensor:
        return self.strategy.experimental_local_results(value)[0]


def _devices(strategy: tf.distribute.Strategy) -> tuple[str, ...]:
    """The replicas' devices and the kind of their strategy; TF's default says no device."""
    extended = strategy.extended
    default = isinstance(extended, distribute_lib._DefaultDistributionExtended)
    return (type(strategy).__name__, *(() if default else extended.worker_devices))
