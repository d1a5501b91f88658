"""`check_modes_agree`: evaluation and prediction use what training has made."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing.checks import evidence
from tpu_estimator_compat.testing.checks.finding import Finding, differing, raise_if_any
from tpu_estimator_compat.testing.results import Result
from tpu_estimator_compat.testing.running import of_subject
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject

_NAMES = {ModeKeys.TRAIN: "TRAIN", ModeKeys.EVAL: "EVAL", ModeKeys.PREDICT: "PREDICT"}
_BY_MODE = "training=(mode == tf.estimator.ModeKeys.TRAIN)"


def check_modes_agree(
    model_fn: ModelFn,
    features: Any,
    labels: Any = None,
    params: Any = None,
    *,
    frozen_batch_norm: bool = False,
    seed: int = SEED,
    use_tpu: bool = True,
) -> None:
    """Calls model_fn in all modes, and fails unless they are modes of one model.

    Example:
      testing.check_modes_agree(model_fn, images, digits)

    Args:
      model_fn, features, labels, params, seed, use_tpu: as for `testing.run`.
      frozen_batch_norm: whether batch normalization is to use its moving averages in training, too.

    Raises:
      AssertionError: EVAL or PREDICT has a variable that TRAIN has not, or of another shape;
        dropout or other random numbers change their results; batch normalization uses the batch's
        statistics there, or moving averages in TRAIN.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    subject = Subject(model_fn, features, labels, params, use_tpu, seed)
    trained = of_subject(subject, ModeKeys.TRAIN)
    findings = [] if frozen_batch_norm else _of_training(trained)
    for mode in (ModeKeys.EVAL, ModeKeys.PREDICT):
        once, twice = (of_subject(subject, mode, steps=passes) for passes in (1, 2))
        findings += _of_variables(trained, once)
        findings += _of_computed(once, twice)
    raise_if_any("check_modes_agree", findings)


def _of_training(result: Result) -> list[Finding]:
    said = "TRAIN: batch normalization uses its moving averages, and never updates them."
    advice = f"pass {_BY_MODE}; or frozen_batch_norm=True, if that is meant"
    return [
        Finding(said, advice, op) for op in evidence.in_inference_mode(evidence.of_loss(result))
    ]


def _of_variables(trained: Result, result: Result) -> list[Finding]:
    found, mode = [], _NAMES[result.mode]
    for name, value in result.before.items():
        if name not in trained.before:
            said = f"{name}: a variable of {mode} that TRAIN has not, and no checkpoint will have."
            advice = "build the same layers, by the same names, in all modes"
        elif value.shape != trained.before[name].shape:
            said = (
                f"{name}: of shape {value.shape} in {mode}, {trained.before[name].shape} in TRAIN."
            )
            advice = "let no shape of a variable depend on mode or batch size"
        else:
            continue
        found.append(Finding(said, advice, evidence.handle_of(result.graph, name)))
    return found


def _of_computed(result: Result, twice: Result) -> list[Finding]:
    mode, predicts = _NAMES[result.mode], result.mode == ModeKeys.PREDICT
    ops = evidence.of_predictions(result) if predicts else evidence.of_loss(result)
    said = f"{mode}: batch normalization uses the statistics of the batch."
    found = [Finding(said, f"pass {_BY_MODE}", op) for op in evidence.uses_batch_statistics(ops)]
    if predicts:
        halves = [{n: np.split(v, 2)[i] for n, v in twice.predictions.items()} for i in (0, 1)]
        changed = differing(*halves)
    else:
        changed = ["loss"] if result.loss != twice.loss else []
    if changed:
        said = f"{mode}: the same examples, given twice, do not give the same {', '.join(changed)}."
        advice = f"switch dropout and noise off: {_BY_MODE}"
        drawn = evidence.draws_random_numbers(ops) or [None]
        found += [Finding(said, advice, op) for op in drawn]
    return found
