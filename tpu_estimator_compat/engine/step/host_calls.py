"""Host calls: what they are, and who makes them.

A spec has functions for the host, `(function, tensors)`: those of `host_call` and of
`eval_metrics`. The tensors are the replicas'; the function gets them concatenated over all
replicas, and builds operations that run once, on the host: summaries, metrics.

- `spec/tpu_estimator_spec.py` checks the field. `modes/captured_mode.py` calls the function in the
  captured graph, on placeholders (`HostPlaceholders`) for the tensors of all replicas.
- `modes/plans.py` puts the operations of `host_call` among the targets of the step's plan, and
  names them as its `host_calls`. `step/cut.py` finds that they depend on placeholders, and so
  belong to the host; it keeps them apart from the rest of the host's part, the metrics.
- `step/program.py` builds them into the step (`HostCalls`). Every step makes its calls, or each
  n-th step of a loop. Where they can wait, a step puts their tensors in a queue, and a thread makes
  the calls while the next steps run (`step/host_queue.py`). `loop/device_loop.py` drives the queue,
  and stops using it where the calls prove quick.
- A session or a Keras callback waits with `finish_host_calls` before a hook, a checkpoint or a
  summary can look.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture.xla_contexts import on_host
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.step.host_part import HostPart
from tpu_estimator_compat.engine.step.host_queue import HostCallQueue
from tpu_estimator_compat.spec.tpu_estimator_spec import HostCall, call_on_host, check_host_call


class HostPlaceholders:
    """Makes placeholders of the host part for tensors of all replicas.

    Args:
      same_on_all_replicas: whether all compute the same: the host gets the first replica's tensors,
        which are not concatenated and may be scalars.

    Attributes:
      made: the placeholders by `key()`, each with the replicas' tensor that it stands for.
    """

    def __init__(self, graph: tf.Graph, replicas: int, *, same_on_all_replicas: bool):
        self.graph = graph
        self.replicas = replicas
        self._same = same_on_all_replicas
        self.made: dict[Key, tuple[tf.Tensor, tf.Tensor]] = {}

    def over_replicas(self, tensor: tf.Tensor) -> tf.Tensor:
        """A placeholder for `tensor` concatenated over replicas: [replicas * batch, ...].

        Where replicas compute the same, it has the tensor's own shape; otherwise a scalar raises
        RuntimeError.
        """
        with self.graph.as_default():
            given, tensor = tensor, tf.convert_to_tensor(tensor)  # from a variable or an array
            if tensor.shape.rank == 0 and not self._same:
                raise RuntimeError(
                    f"All tensors outfed from TPU should preserve batch size dimension, but got "
                    f"scalar {given}. Reshape it, for example with tf.reshape(tensor, [1])."
                )
            placeholder = tf.compat.v1.placeholder(
                tensor.dtype, self._shape(tensor.shape), name=f"over_replicas/{tensor.op.name}"
            )
        self.made[key(placeholder)] = (placeholder, tensor)
        return placeholder

    def _shape(self, shape: tf.TensorShape) -> tf.TensorShape:
        if self._same or shape.rank is None:
            return shape
        rows = None if shape[0] is None else shape[0] * self.replicas
        return tf.TensorShape([rows]).concatenate(shape[1:])

    def call(self, name: str, host_call: HostCall) -> Any:
        """Calls `host_call`'s function on placeholders for its tensors; returns the result.

        The captured graph must be the default graph.

        Args:
          name: the field of the spec, for messages: `eval_metrics` or `host_call`.
          host_call: `(function, tensors)`; a list is passed by position, a dict by name.

        Raises:
          RuntimeError: one of the tensors is a scalar.
          TypeError: one of them is no tensor.
          ValueError: the function uses a tensor of model_fn that is not passed, or makes a summary
            of `tf.compat.v1.summary`.
        """
        check_host_call(name, host_call)  # a spec's _replace does not check
        function, tensors = host_call
        for tensor in tensors.values() if isinstance(tensors, dict) else tensors:
            if not hasattr(tensor, "shape"):
                raise TypeError(
                    f"{name}[1] must hold tensors, given: {tensor!r}. Convert it to one."
                )
        placeholders: Any
        if isinstance(tensors, dict):
            placeholders = {k: self.over_replicas(t) for k, t in tensors.items()}
        else:
            placeholders = [self.over_replicas(t) for t in tensors]
        return on_host(name, lambda: call_on_host(name, (function, placeholders)))


class HostCalls:
    """Builds the host calls of a step.

    Args:
      step_in_loop: a variable on the host that counts the steps of a loop; None where every step
        makes its calls.
      every: n, of the steps of a loop that make their calls: each n-th, from the first.

    Attributes:
      part: the operations of the calls.
      queue: the queue in which calls wait, until it is left; None where steps make their calls from
        the start.
      every: None where every step makes its calls.
    """

    def __init__(
        self,
        part: HostPart,
        queue: HostCallQueue | None,
        step_in_loop: tf.Variable | None,
        every: int,
    ):
        self.part, self.queue = part, queue
        self._step_in_loop = step_in_loop if part.program.targets else None
        self.every = None if self._step_in_loop is None else every

    @property
    def _open_queue(self) -> HostCallQueue | None:
        return None if self.queue is None or self.queue.left else self.queue

    def cache_key(self) -> Hashable | None:
        """The key that host calls with the same computation share; None where none shares it."""
        own = self.part.cache_key
        return None if own is None else (own, self.every, *self.handles())

    def handles(self) -> dict[str, tf.Tensor]:
        """Handles of resources that calls use besides the variables of the graph, by name."""
        found = {"queue": self._open_queue.handle} if self._open_queue else {}
        if self._step_in_loop is not None:
            found["step_in_loop"] = self._step_in_loop.handle
        return found

    def __call__(self, given: Mapping[Key, tf.Tensor], after: Sequence[tf.Operation]) -> None:
        """Builds the calls of a step; see `HostPart`."""
        if self._step_in_loop is None:
            self._call(given, after)
            return

        def call() -> tf.Tensor:
            self._call(given, ())
            return tf.constant(True)

        due = tf.equal(self._step_in_loop % self.every, 0)
        with tf.control_dependencies(after):
            tf.cond(due, call, lambda: tf.constant(False))
        self._step_in_loop.assign_add(1)

    def _call(self, given: Mapping[Key, tf.Tensor], after: Sequence[tf.Operation]) -> None:
        if self._open_queue:
            self._open_queue.put([given[key(t)] for t in self.part.program.feeds])
        elif self.part.program.targets:
            self.part(given, after)
