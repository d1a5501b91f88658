"""`check_batch_independent`: the prediction for an example depends on no other example."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing.checks import evidence
from tpu_estimator_compat.testing.checks.finding import Finding, close, raise_if_any
from tpu_estimator_compat.testing.results import Result
from tpu_estimator_compat.testing.running import of_subject
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject

Close = Callable[[np.ndarray, np.ndarray], bool]
_NO_METRICS = ("loss", "global_step")
"""Values that evaluation adds; a batch's loss is one number, which cannot leave out examples."""

_ADVICE = (
    "reduce over other axes than 0, and let batch normalization use its moving averages in PREDICT"
)
_LOOK = "look for what goes along axis 0: sorting, gathering, reshaping, matrix products"


def check_batch_independent(
    model_fn: ModelFn,
    features: Any,
    labels: Any = None,
    params: Any = None,
    *,
    padding: Mapping[str, Any] | None = None,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    seed: int = SEED,
    use_tpu: bool = True,
) -> None:
    """Predicts each half of the examples beside others, and fails if a prediction changes.

    With `padding` it also evaluates the examples with and without as many others that only fill up
    a batch, as inputs for TPUs do, and fails if those change a metric.

    Example:
      testing.check_batch_independent(model_fn, features, labels, padding={"is_real_example": 0})

    Args:
      model_fn, features, labels, params, seed, use_tpu: as for `testing.run`. Two examples or more,
        which differ from each other.
      padding: the values of features that mark an example as padding; features are a dict then.
      rtol, atol: relative and absolute difference that counts as rounding.

    Raises:
      AssertionError: the predictions depend on other examples, with the lines that mix examples; a
        metric counts padding.
      ValueError: there is one example only, or all are equal; `padding` has a feature that is not
        there.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    subject = Subject(model_fn, features, labels, params, use_tpu, seed)
    leaves = tf.nest.flatten(subject.features)
    if subject.batch_size < 2 or all(map(_are_equal, leaves)):
        raise ValueError(
            "check_batch_independent needs two examples at least that differ from each other. Got "
            f"{subject.batch_size}, {'equal' if subject.batch_size > 1 else 'no more'}."
        )
    is_close = functools.partial(close, rtol=rtol, atol=atol)
    findings = _of_predictions(subject, is_close)
    if padding is not None:
        findings += _of_metrics(subject, padding, is_close)
    raise_if_any("check_batch_independent", findings)


def _of_predictions(subject: Subject, is_close: Close) -> list[Finding]:
    size = subject.batch_size
    whole = of_subject(subject, ModeKeys.PREDICT)
    findings: dict[str, Finding] = {}
    half = np.arange(size) < (size + 1) // 2
    for kept in (half, ~half):
        # The first or the last example that is kept replaces the others.
        one = np.flatnonzero(kept)[0 if kept[0] else -1]
        rows = np.where(kept, np.arange(size), one)
        alone = of_subject(_mapped(subject, operator.itemgetter(rows)), ModeKeys.PREDICT)
        for key, value in whole.predictions.items():
            if not is_close(value[kept], alone.predictions[key][kept]):
                findings.setdefault(key, _finding(whole, alone, key, kept))
    if not findings:
        return []
    lines = evidence.mixing(evidence.of_predictions(whole), size)
    mixing = [Finding("This mixes examples.", _ADVICE, op) for op in lines]
    return [*findings.values(), *(mixing or [Finding("No line was recognised.", _LOOK)])]


def _mapped(subject: Subject, function: Callable[[np.ndarray], np.ndarray]) -> Subject:
    features = tf.nest.map_structure(function, subject.features)
    labels = subject.labels
    if labels is not None:
        labels = tf.nest.map_structure(function, labels)
    return dataclasses.replace(subject, features=features, labels=labels)


def _of_metrics(subject: Subject, padding: Mapping[str, Any], is_close: Close) -> list[Finding]:
    given = subject.features if isinstance(subject.features, dict) else {}
    if missing := sorted(padding.keys() - given.keys()):
        raise ValueError(f"padding names {missing}, but features are {sorted(given) or 'no dict'}.")
    expected = of_subject(subject, ModeKeys.EVAL).metrics
    findings: dict[str, Finding] = {}
    for is_rolled in (True, False):
        padded = _padded(subject, padding, is_rolled)
        found = of_subject(padded, ModeKeys.EVAL).metrics
        for name in expected.keys() - set(_NO_METRICS):
            if not is_close(np.asarray(expected[name]), np.asarray(found[name])):
                findings[name] = Finding(
                    f"{name}: {expected[name]:g} of {subject.batch_size} examples, "
                    f"{found[name]:g} with padding.",
                    f"give the metric weights that are zero there, from {sorted(padding)}",
                )
    return [findings[name] for name in sorted(findings)]


def _padded(subject: Subject, padding: Mapping[str, Any], is_rolled: bool) -> Subject:
    """Doubles the examples; the added labels are wrong, as right ones would not change a mean."""
    rows = np.arange(subject.batch_size)
    numbers = itertools.count(1)

    def extended(leaf: np.ndarray) -> np.ndarray:
        number = next(numbers)
        more = np.roll(rows, number) if is_rolled else np.full_like(rows, number % len(rows))
        return np.concatenate([leaf, leaf[more]])

    padded = _mapped(subject, extended)
    for name, value in padding.items():
        padded.features[name][subject.batch_size :] = value
    return padded


def _are_equal(leaf: Any) -> bool:
    return bool(np.all(np.asarray(leaf) == np.asarray(leaf)[:1]))


def _finding(whole: Result, alone: Result, key: str, kept: np.ndarray) -> Finding:
    one, other = whole.predictions[key], alone.predictions[key]
    rows = [i for i in np.flatnonzero(kept) if not np.array_equal(one[i], other[i])]
    row = int(rows[0]) if rows else int(np.flatnonzero(kept)[0])
    return Finding(
        f"predictions[{key!r}]: of example {row} it is {_short(one[row])}, and "
        f"{_short(other[row])} beside other examples."
    )


def _short(value: np.ndarray) -> str:
    return np.array2string(np.ravel(value)[:4], precision=6, separator=", ")
