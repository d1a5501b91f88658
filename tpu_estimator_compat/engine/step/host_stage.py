"""A host stage: the host's part of a step before the device part, with variables of its own.

It is for variables that no device can hold, or input without a static shape. The host runs it on
each replica's element, and feeds its tensors to the replicas; afterwards, operations of the host
part update its variables. Each of several machines may hold some rows of a variable.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_ops import Key, key

if TYPE_CHECKING:
    from tpu_estimator_compat.engine.step.host_calls import HostPlaceholders


@dataclasses.dataclass(frozen=True)
class HostStage:
    """The computation of a host stage, as a part of a step's plan.

    From a replica's values of the plan's `feeds`, it computes `tensors`, which are input of the
    device part, and `results`, which are input of the host part.

    Attributes:
      tensors: by `key()`, a placeholder of the device part, and the host's tensor that it stands
        for. On a TPU their shapes are static.
      results: tensors of the stage, not of the replicas, for which `host_placeholders` stand.
      sharded: variables of which each machine has some rows, with TF's slice info.
      partial: keys of the `tensors` that read sharded variables. The machines compute them once for
        all replicas, from `host_placeholders` of `results`, and add them up; each replica is fed
        its part along dimension 0.
    """

    tensors: Mapping[Key, tuple[tf.Tensor, tf.Tensor]]
    results: Sequence[tf.Tensor] = ()
    sharded: Sequence[tf.Variable] = ()
    partial: frozenset[Key] = frozenset()

    @property
    def placeholders(self) -> list[tf.Tensor]:
        return [placeholder for placeholder, _ in self.tensors.values()]

    def gives(self, tensor: tf.Tensor) -> bool:
        """Whether `tensor` is one of the results, not a tensor of the replicas."""
        return key(tensor) in self._keys_of_results

    @functools.cached_property
    def _keys_of_results(self) -> frozenset[Key]:
        return frozenset(map(key, self.results))


class HostStageBuilder(Protocol):
    """Builds a host stage in a captured graph: before and after the call of model_fn."""

    @property
    def stage(self) -> HostStage | None:
        """The stage, complete after training's `updates`; None if model_fn used no tensor of it."""

    @property
    def variables(self) -> list[tf.Variable]:
        """The stage's variables; none before `leave`."""

    def enter(self, features: Any) -> Any:
        """The features for model_fn, with placeholders for the stage's tensors."""

    def leave(self) -> None:
        """Builds the stage, after the call of model_fn."""

    def updates(self, host: HostPlaceholders) -> list[tf.Operation]:
        """Builds the operations that update the stage's variables, in the host part."""
