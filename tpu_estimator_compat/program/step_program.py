"""One step of a captured graph: the replicas' share, the exchange, then the host's share.

A fetch belongs to the host if it depends on something concatenated over replicas (metrics, host
calls, predictions), to the replicas if it depends on the step's input, and to the host otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tensorflow as tf

from tpu_estimator_compat.program import eager, prune
from tpu_estimator_compat.program.capture import (
    CapturedGraph,
    Structure,
    check_element,
    plain_element,
)
from tpu_estimator_compat.program.prune import Key, key
from tpu_estimator_compat.program.replica_program import ReplicaProgram
from tpu_estimator_compat.program.variables import VariableStore


class StepProgram:
    """A callable that builds one step into the tf.function under construction.

    Args:
      captured: the captured graph.
      store: its live variables; those that this step needs are created here.
      fetches: tensors to return from every step.
      targets: operations to run in every step.
      mean: tensors to average over replicas; other fetches of the replicas' share are the first
        replica's.
      jit_compile: compile the replicas' share with XLA.
    """

    def __init__(
        self,
        captured: CapturedGraph,
        store: VariableStore,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        *,
        mean: Iterable[tf.Tensor] = (),
        jit_compile: bool = False,
    ):
        self.captured, self.store, self.strategy = captured, store, store.strategy
        self.fetches = list(fetches)
        self._jit_compile = jit_compile
        self._mean = {key(t) for t in mean}
        host_fetches = [t for t in self.fetches if self._is_host(t.op)]
        self._host = self._host_program(host_fetches, targets)
        own = [t for t in self.fetches if not self._is_host(t.op)]
        behind = [captured.stand_ins[key(p)][1] for p in self._host.feeds]
        self._outputs = list({key(t): t for t in own + behind}.values())
        self._replica = ReplicaProgram(
            captured.graph,
            captured.feeds,
            self._outputs,
            [op for op in targets if not self._is_host(op)],
            replicas=self.strategy.num_replicas_in_sync,
            native_collectives=isinstance(self.strategy, tf.distribute.TPUStrategy),
        )
        store.prepare(self._replica.handles, replicated=True, trainable=captured.trainable_names())
        store.prepare(self._host.handles, replicated=False)
        step = self.on_replica
        self._step = eager.function(step, jit_compile=True) if jit_compile else step

    @property
    def is_flat(self) -> bool:
        """Whether one replica runs it, with no functions (branches, loop bodies) in it."""
        one = self.strategy.num_replicas_in_sync == 1 and not self._jit_compile
        ops = [*self._replica.ops, *self._host.ops]
        return one and not any(map(prune.calls_functions, ops))

    def _is_host(self, op: tf.Operation) -> bool:
        if op.name in self.captured.depends_on_stand_ins():
            return True
        if op.name in self.captured.replica_ops:
            return False
        return op.name not in self.captured.depends_on_input()

    def _host_program(
        self, fetches: Sequence[tf.Tensor], targets: Sequence[tf.Operation]
    ) -> ReplicaProgram:
        """Fetches that ignore both input and replicas are read here too, after the replicas."""
        mine = [op for op in targets if self._is_host(op)]
        stand_ins = self.captured.stand_ins
        ops = prune.ancestors([*(t.op for t in fetches), *mine], set(stand_ins))
        consumed = {key(t) for op in ops for t in op.inputs} | {key(t) for t in fetches}
        consumed |= {(op.name, 0) for op in ops}
        needed = [placeholder for k, (placeholder, _) in stand_ins.items() if k in consumed]
        return ReplicaProgram(self.captured.graph, needed, fetches, mine)

    @tf.autograph.experimental.do_not_convert
    def on_replica(self, data: Structure) -> list[tf.Tensor]:
        """What every replica runs, in replica context.

        Args:
          data: the replica's input element.

        Returns:
          The replicas' share: fetches of theirs, then tensors that the host's share wants.
        """
        data = plain_element(data)
        check_element(data, self.captured.element_spec)
        values = tf.nest.flatten(data, expand_composites=True)
        return self._replica(values, self.store.replica_handle)

    def __call__(self, data: Structure) -> list[tf.Tensor]:
        """Runs one step.

        Args:
          data: the step's input element, or one per replica as the strategy distributes it.

        Returns:
          One tensor per fetch.
        """
        outputs = self.strategy.run(self._step, args=(data,))
        values = {key(t): out for t, out in zip(self._outputs, outputs, strict=True)}
        behind = [self.captured.stand_ins[key(p)][1] for p in self._host.feeds]
        over_replicas = [self._over_replicas(values[key(t)]) for t in behind]
        host_values = self._host(over_replicas, self.store.host_handle)
        on_host = {key(t): v for t, v in zip(self._host.fetches, host_values, strict=True)}
        return [
            on_host[key(t)] if key(t) in on_host else self._one(key(t), values[key(t)])
            for t in self.fetches
        ]

    def _over_replicas(self, value) -> tf.Tensor:
        parts = self.strategy.experimental_local_results(value)
        return parts[0] if len(parts) == 1 else tf.concat(parts, axis=0)

    def _one(self, k: Key, value) -> tf.Tensor:
        if k in self._mean:
            return self.strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=None)
        return self.strategy.experimental_local_results(value)[0]
