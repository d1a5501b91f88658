"""`check_learns`: training on one batch lowers the loss and moves every trainable variable."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing.checks import evidence
from tpu_estimator_compat.testing.checks.finding import Finding, raise_if_any
from tpu_estimator_compat.testing.devices import check_count
from tpu_estimator_compat.testing.recording import Recorder
from tpu_estimator_compat.testing.results import Result
from tpu_estimator_compat.testing.running import of_subject
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject

_UPDATES = (
    "with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)): "
    "train_op = optimizer.minimize(loss, tf.train.get_global_step())"
)


def check_learns(
    model_fn: ModelFn,
    features: Any,
    labels: Any = None,
    params: Any = None,
    *,
    steps: int = 50,
    loss_below: float = 0.9,
    frozen: Collection[str] = (),
    replicas: int = 1,
    seed: int | None = SEED,
    use_tpu: bool = True,
) -> None:
    """Trains on one batch again and again, and fails unless the model can learn it by heart.

    Example:
      testing.check_learns(model_fn, images, digits, {"learning_rate": 0.1})

    Args:
      model_fn, features, labels, params, replicas, seed, use_tpu: as for `testing.run`.
      steps: training steps. More than a warm-up of the learning rate has.
      loss_below: the last loss must be below this share of the first.
      frozen: beginnings of the names of trainable variables that are not to move.

    Raises:
      AssertionError: the loss does not fall or becomes NaN; a trainable variable did not move, and
        whether it has a gradient; a gradient is NaN; operations in UPDATE_OPS that train_op does
        not run; a global step that stands still.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    check_count(steps, "steps")
    subject = Subject(model_fn, features, labels, params, use_tpu, seed)
    findings = []
    recorder = Recorder(subject)
    try:
        first = of_subject(subject, ModeKeys.TRAIN, replicas, recorder=recorder)
        findings += _of_first_step(first)
        recorder = Recorder(subject)
        last = of_subject(subject, ModeKeys.TRAIN, replicas, steps, recorder=recorder)
    except tf.compat.v1.train.NanLossDuringTrainingError:
        finite = [loss for loss in recorder.losses if not np.isnan(loss)]
        said = f"loss: it is NaN in step {len(finite) + 1}."
        findings.append(Finding(said, _FINITE, recorder.spec.loss.op))
    else:
        findings += _of_movement(first, last, tuple(frozen), steps)
        findings += _of_loss(last, loss_below, steps)
    raise_if_any("check_learns", findings)


_FINITE = (
    "add a small number within logarithms, roots and divisions, clip gradients, or lower the "
    "learning rate"
)


def _of_first_step(result: Result) -> list[Finding]:
    found = []
    for name, gradient in result.gradients.items():
        if gradient is not None and not np.all(np.isfinite(gradient)):
            said = f"{name}: its gradient is not finite in the first step."
            found.append(Finding(said, _FINITE, evidence.handle_of(result.graph, name)))
    left_out = map(result.graph.get_operation_by_name, result.update_ops_left_out)
    for op in evidence.one_per_line(left_out):
        found.append(Finding(f"{op.name}: an update in UPDATE_OPS that nobody runs.", _UPDATES, op))
    return found


def _of_loss(last: Result, loss_below: float, steps: int) -> list[Finding]:
    found = []
    if not last.global_step:
        said = f"global_step: it is 0 after {steps} step(s)."
        advice = "pass tf.train.get_global_step() to minimize or apply_gradients"
        found.append(Finding(said, advice))
    if not last.losses[-1] < loss_below * last.losses[0]:
        said = f"loss: {last.losses[0]:g} in the first step, {last.losses[-1]:g} in step {steps}."
        advice = (
            "train longer or faster, if that is all; it should fall below "
            f"{loss_below:g} times the first"
        )
        found.append(Finding(said, advice, last.spec.loss.op))
    return found


def _of_movement(first: Result, last: Result, frozen: tuple[str, ...], steps: int) -> list[Finding]:
    moved = set(last.moved)
    still = [n for n in last.trainable if n not in moved and not (frozen and n.startswith(frozen))]
    return [
        Finding(
            f"{name}: it did not move in {steps} step(s). {why}",
            advice,
            evidence.handle_of(last.graph, name),
        )
        for name in still
        for why, advice in [_reason(first, name)]
    ]


def _reason(result: Result, name: str) -> tuple[str, str]:
    if name not in result.gradients:
        shown = (
            "This check cannot see its gradient."
            if not result.gradients
            else "The optimizer leaves it out."
        )
        return shown, "give the optimizer all trainable variables, or name it in `frozen`"
    gradient = result.gradients[name]
    if gradient is None:
        return (
            "The loss does not depend on it: its gradient is None.",
            "use the layer's result, or remove the variable",
        )
    if not np.any(gradient):
        return (
            "Its gradient is zero everywhere.",
            "look for tf.stop_gradient, integers, a dead activation, or a loss that is constant",
        )
    return "Its gradient is not zero.", "look at the learning rate, and at what train_op runs"
