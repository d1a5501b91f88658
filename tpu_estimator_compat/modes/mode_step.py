"""What one step of a mode computes, besides what an estimator's own listeners look at."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tpu_estimator_compat.modes.captured_mode import CapturedMode
from tpu_estimator_compat.modes.metrics import LOSS, metric_pairs
from tpu_estimator_compat.modes.training import host_call_targets, train_targets
from tpu_estimator_compat.program.capture import as_operation
from tpu_estimator_compat.spec import EstimatorSpec, HostCallHook, ModeKeys


@dataclasses.dataclass
class ModeStep:
    """One step.

    Attributes:
      fetches: the loss; in PREDICT the predictions, over all replicas, flattened.
      targets: operations that run for their effect.
      values: metric values by name, in EVAL; they are not fetched in a step.
    """

    fetches: list[tf.Tensor]
    targets: list[tf.Operation]
    values: dict[str, tf.Tensor] = dataclasses.field(default_factory=dict)


def mode_step(run: CapturedMode) -> ModeStep:
    """Builds the host's share of a mode's step, and says what the step is.

    Call it inside `run.in_graph()`.

    Args:
      run: the prepared mode.

    Raises:
      RuntimeError: a scalar is wanted of all replicas.
    """
    spec = run.spec
    if run.mode == ModeKeys.PREDICT:
        return ModeStep([run.over_replicas(t) for t in tf.nest.flatten(spec.predictions)], [])
    if run.mode == ModeKeys.TRAIN:
        return ModeStep([spec.loss], [*train_targets(run), *_host_calls_in_hooks(run)])
    pairs = metric_pairs(run)
    targets = [update for _, update in pairs.values()] + host_call_targets(run)
    values = {name: value for name, (value, _) in pairs.items() if name != LOSS}
    return ModeStep([spec.loss], [*targets, *_host_calls_in_hooks(run)], values)


def _host_calls_in_hooks(run: CapturedMode) -> list[tf.Operation]:
    """Host calls of a spec that was made for a run without TPU, where they are hooks."""
    if not isinstance(run.spec, EstimatorSpec):
        return []
    train = run.mode == ModeKeys.TRAIN
    hooks = run.spec.training_hooks if train else run.spec.evaluation_hooks
    calls = [hook.fetches for hook in hooks or () if isinstance(hook, HostCallHook)]
    return [as_operation(x) for x in tf.nest.flatten(calls) if x is not None]
