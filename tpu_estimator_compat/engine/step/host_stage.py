"""A host stage: the host's part of a step before the device part, with variables of its own.

It is for what no device can hold, or whose input has no static shape. The host computes it for the
element of every replica. The replicas are fed its tensors; after them, operations of the host part
update its variables. Several machines may each have some rows of a variable.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.step.host_placeholders import HostPlaceholders


@dataclasses.dataclass(frozen=True)
class HostStage:
    """The computation of a host stage, as a part of a step's plan.

    It is a program of its own: fed the plan's `feeds`, it fetches `tensors` and `results`, once for
    every replica. Their values are ordinary input of the device part, and of the host part.

    Attributes:
      tensors: by `key()` a placeholder of the device part, and the host's tensor that it stands
        for. Those of a TPU have static shapes.
      results: tensors that the host part wants of all replicas: values of `host_placeholders`
        that this stage computes, and not the replicas.
      sharded: variables of which each machine has some rows, with TF's slice info of them.
      partial: keys of those of `tensors` that read such variables. What such a tensor stands for is
        the sum over the machines, once for all replicas; it depends on `host_placeholders` for
        `results`, and each replica is fed its part along dimension 0.
    """

    tensors: Mapping[Key, tuple[tf.Tensor, tf.Tensor]]
    results: Sequence[tf.Tensor] = ()
    sharded: Sequence[tf.Variable] = ()
    partial: frozenset[Key] = frozenset()

    @property
    def placeholders(self) -> list[tf.Tensor]:
        """The placeholders of the replicas' input."""
        return [placeholder for placeholder, _ in self.tensors.values()]

    def gives(self, tensor: tf.Tensor) -> bool:
        """Whether `tensor` is one of the results, and so no replica's."""
        return key(tensor) in self._keys_of_results

    @functools.cached_property
    def _keys_of_results(self) -> frozenset[Key]:
        return frozenset(map(key, self.results))


class HostStageBuilder(Protocol):
    """Builds a host stage in a captured graph: before and after the call of model_fn."""

    @property
    def stage(self) -> HostStage | None:
        """The stage, of a training after `updates`; None where model_fn took nothing of it."""

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables of the host; none before `leave`."""

    def enter(self, features: Any) -> Any:
        """The features as model_fn is to have them, with placeholders of the stage's tensors."""

    def leave(self) -> None:
        """Builds the stage; model_fn has been called."""

    def updates(self, host: HostPlaceholders) -> list[tf.Operation]:
        """Builds the operations that update the stage's variables, in the host part."""
