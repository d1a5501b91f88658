"""`check_replicas_agree`: several replicas do to a global batch what one does."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tpu_estimator_compat.engine.graph.graph_ops import as_operation
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing.checks import evidence
from tpu_estimator_compat.testing.checks.finding import Finding, raise_if_any
from tpu_estimator_compat.testing.devices import check_count
from tpu_estimator_compat.testing.results import Result
from tpu_estimator_compat.testing.running import of_subject
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject

_WRAP = (
    "wrap the optimizer: optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer). An optimizer "
    "of your own must call apply_gradients of the wrapper, not of what is wrapped. Keras' "
    "optimizers cannot be wrapped: give them gradients that tf.tpu.cross_replica_sum has added up"
)
_SCALE = (
    "take the mean over the replica's examples, once: CrossShardOptimizer takes the mean over "
    "replicas. Or let it add: CrossShardOptimizer(optimizer, reduction=tf.losses.Reduction.SUM)"
)
_UNEVEN = (
    "each replica counts for one, however many of its examples count: divide by a number that is "
    "the same on all, such as params['batch_size'], and not by the sum of weights or of a mask"
)


def check_replicas_agree(
    model_fn: ModelFn,
    features: Any,
    labels: Any = None,
    params: Any = None,
    *,
    replicas: int = 2,
    rtol: float | None = None,
    seed: int = SEED,
) -> None:
    """Makes a training step on one replica and on several, and fails unless they do the same.

    The examples are the global batch both times.

    Example:
      testing.check_replicas_agree(model_fn, images, digits, replicas=4)

    Args:
      model_fn, features, labels, params, seed: as for `testing.run`.
      replicas: of the second step, at least 2; their number divides that of the examples.
      rtol: difference that counts as rounding, relative to the largest element; None for 1e-3, or
        3e-2 where the loss depends on bfloat16 or half.

    Raises:
      AssertionError: losses, gradients or variables differ, with the cause if it is one of these:
        no CrossShardOptimizer, a loss that is divided too often or not at all, gradients that are
        clipped before they are added up, batch statistics, random numbers.
      ValueError: fewer than two replicas, or a batch that they cannot share.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    check_count(replicas, "replicas")
    if replicas == 1:
        raise ValueError("check_replicas_agree compares one replica with several; got replicas=1.")
    subject = Subject(model_fn, features, labels, params, True, seed)
    one = of_subject(subject, ModeKeys.TRAIN)
    try:
        several = of_subject(subject, ModeKeys.TRAIN, replicas)
    except ValueError as error:
        if not str(error).startswith("CrossShardOptimizer must be used"):
            raise
        said = f"No gradient is added up over {replicas} replicas: each would train alone."
        alone = Finding(said, _WRAP, as_operation(one.spec.train_op))
        raise_if_any("check_replicas_agree", [alone])
    if rtol is None:
        rtol = _OF_COARSE if evidence.rounds_coarsely(evidence.of_loss(one)) else _OF_FLOAT
    comparison = _Comparison(one, several, rtol)
    raise_if_any("check_replicas_agree", comparison.findings())


_ROUNDING = 1e-6
_OF_FLOAT, _OF_COARSE = 1e-3, 3e-2


@dataclasses.dataclass(frozen=True)
class _Comparison:
    """A step on one replica and the same step on several."""

    one: Result
    several: Result
    rtol: float

    def findings(self) -> list[Finding]:
        apart = [n for n in self.several.trainable if self.several.disagreement.get(n)]
        if apart:
            count = self.several.replicas
            said = f"{', '.join(apart)}: each of {count} replicas has another value after the step."
            return [Finding(said, _WRAP, evidence.handle_of(self.several.graph, apart[0]))]
        wrong = self._differing()
        # With reduction=SUM, a replica's loss is its share of the whole.
        loss = self._loss_ratio()
        if not wrong and (self._is_one(loss) or self._is_one(loss * self.several.replicas)):
            return []
        ratio = self._common_ratio(wrong) if wrong else None
        causes = [] if ratio is not None else self._causes(wrong)
        return [self._difference(wrong, ratio), *causes]

    def _differing(self) -> list[str]:
        """Names of the variables whose gradients differ, or which moved differently."""
        return [name for name in self.one.trainable if not self._is_close(*self._pair(name))]

    def _pair(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A variable's gradients, or its changes if these are unknown, on one replica and more."""
        results = self.one, self.several
        shown = [result.gradients.get(name) for result in results]
        if any(gradient is None for gradient in shown):
            shown = [result.after[name] - result.before[name] for result in results]
        return shown[0], shown[1]  # type: ignore[return-value]

    def _is_close(self, one: np.ndarray, several: np.ndarray) -> bool:
        largest = max(np.max(np.abs(one), initial=0), np.max(np.abs(several), initial=0))
        # Gradients that cancel out, such as of a bias before batch normalization, are rounding.
        rounding = _ROUNDING * self._largest
        return bool(np.max(np.abs(one - several), initial=0) <= self.rtol * largest + rounding)

    @functools.cached_property
    def _largest(self) -> float:
        pairs = map(self._pair, self.one.trainable)
        return max((float(np.max(np.abs(one), initial=0)) for one, _ in pairs), default=0.0)

    def _loss_ratio(self) -> float:
        one, several = self.one.loss, self.several.loss
        return several / one if one else float(several == one) or float("inf")

    def _is_one(self, ratio: float) -> bool:
        return abs(ratio - 1) <= self.rtol

    def _difference(self, wrong: Sequence[str], ratio: float | None) -> Finding:
        count = self.several.replicas
        told = (
            f"loss: {self.one.loss:g} on one replica, {self.several.loss:g} on {count}, on average."
        )
        if not wrong:
            return Finding(told, _UNEVEN, self.one.spec.loss.op)
        if ratio is None:
            named = ", ".join(f"{name} ({self._worst(name):.2g})" for name in wrong[:5])
            more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            said = f"Gradients on {count} replicas differ, by this share: {named}{more}."
            return Finding(f"{said} {told}")
        times = f"{ratio:.4g}" if ratio >= 1 else f"1/{1 / ratio:.4g}"
        which = "All gradients" if len(wrong) == len(self.one.trainable) else ", ".join(wrong)
        said = f"{which}: on {count} replicas {times} times what they are on one. {told}"
        if abs(ratio * count - 1) <= self.rtol:
            said += (
                f" The loss is divided by the number of replicas ({count}) once too often, or is "
                "a sum over the replica's examples."
            )
        elif abs(ratio / count - 1) <= self.rtol:
            said += f" They are added up, and nothing divides by the number of replicas ({count})."
        return Finding(said, _SCALE, self.one.spec.loss.op)

    def _worst(self, name: str) -> float:
        one, several = self._pair(name)
        return float(np.max(np.abs(one - several)) / max(np.max(np.abs(one)), 1e-30))

    def _common_ratio(self, wrong: Sequence[str]) -> float | None:
        """The number by which all gradients on several replicas are multiplied, if there is one."""
        if any(self.several.gradients.get(name) is None for name in wrong):
            return None
        pairs = [self._pair(name) for name in wrong]
        flat = [np.concatenate([np.ravel(pair[i]) for pair in pairs]) for i in (0, 1)]
        if not np.any(flat[0]):
            return None
        ratio = float(np.vdot(flat[0], flat[1]) / np.vdot(flat[0], flat[0]))
        return ratio if ratio > 0 and self._is_close(ratio * flat[0], flat[1]) else None

    def _causes(self, wrong: Sequence[str]) -> list[Finding]:
        """Findings that explain, by the graph, gradients that differ by no common factor."""
        ops = evidence.needed([self.several.spec.loss])
        found = [
            Finding(said, advice, op)
            for said, advice, causes in (
                (_CLIPS, _CLIP_ADVICE, evidence.clips_before_sum(self.several.graph)),
                (_BATCH, _BATCH_ADVICE, evidence.uses_batch_statistics(ops)),
                (_RANDOM, _RANDOM_ADVICE, evidence.draws_random_numbers(ops)),
            )
            for op in causes
        ]
        return found or ([Finding("No cause was recognised.", _UNEVEN)] if wrong else [])


_CLIPS = "Gradients of one replica are clipped, and added up after that."
_CLIP_ADVICE = (
    "clip what is added up: gradients = [tf.tpu.cross_replica_sum(g) / replicas for g in gradients]"
    ", then clip, then apply them with the optimizer that is not wrapped"
)
_BATCH = "Batch normalization takes the statistics of a replica's share of the batch."
_BATCH_ADVICE = (
    "exchange them between replicas (the moments through tf.tpu.cross_replica_sum), or switch it "
    "to its moving averages for this check: results depend on the number of replicas"
)
_RANDOM = "Each replica draws random numbers of its own."
_RANDOM_ADVICE = "switch dropout and noise off for this check, by a key of params"
