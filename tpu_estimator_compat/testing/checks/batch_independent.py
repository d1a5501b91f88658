"""`check_batch_independent`: the prediction for an example depends on no other example."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing.checks import evidence
from tpu_estimator_compat.testing.checks.finding import Finding, raise_if_any
from tpu_estimator_compat.testing.results import Result
from tpu_estimator_compat.testing.running import of_subject
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject

_ADVICE = (
    "reduce over other axes than 0, and let batch normalization use its moving averages in PREDICT"
)


def check_batch_independent(
    model_fn: ModelFn,
    features: Any,
    params: Any = None,
    *,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    seed: int = SEED,
    use_tpu: bool = True,
) -> None:
    """Predicts a half of the examples beside different others, and fails if that changes it.

    Example:
      testing.check_batch_independent(model_fn, images)

    Args:
      model_fn, features, params, seed, use_tpu: as for `testing.run`. Two examples or more, which
        differ from each other.
      rtol, atol: relative and absolute difference of predictions that counts as rounding.

    Raises:
      AssertionError: the predictions depend on other examples, with the lines that mix examples.
      ValueError: there is one example only, or all are equal.
    """
    subject = Subject(model_fn, features, None, params, use_tpu, seed)
    size = subject.batch_size
    if size < 2 or all(_are_equal(leaf) for leaf in tf.nest.flatten(subject.features)):
        raise ValueError(
            "check_batch_independent needs two examples at least that differ from each other. Got "
            f"{size}."
        )
    whole = of_subject(subject, ModeKeys.PREDICT)
    findings: dict[str, Finding] = {}
    half = np.arange(size) < (size + 1) // 2
    for kept in (half, ~half):
        # Instead of the others, the first or last of those that are kept.
        one = np.flatnonzero(kept)[0 if kept[0] else -1]
        rows = np.where(kept, np.arange(size), one)
        features = tf.nest.map_structure(lambda leaf, rows=rows: leaf[rows], subject.features)
        alone = of_subject(dataclasses.replace(subject, features=features), ModeKeys.PREDICT)
        for key in _depending(whole, alone, kept, rtol, atol):
            findings.setdefault(key, _finding(whole, alone, key, kept))
    lines = evidence.mixing(evidence.of_predictions(whole)) if findings else []
    raise_if_any(
        "check_batch_independent",
        [*findings.values(), *(Finding("This mixes examples.", _ADVICE, op) for op in lines)],
    )


def _are_equal(leaf: Any) -> bool:
    return bool(np.all(np.asarray(leaf) == np.asarray(leaf)[:1]))


def _depending(
    whole: Result, alone: Result, kept: np.ndarray, rtol: float, atol: float
) -> list[str]:
    return [
        key
        for key, value in whole.predictions.items()
        if not _close(value[kept], alone.predictions[key][kept], rtol, atol)
    ]


def _close(one: np.ndarray, other: np.ndarray, rtol: float, atol: float) -> bool:
    if one.dtype.kind not in "fc":
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol, atol, equal_nan=True)


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
