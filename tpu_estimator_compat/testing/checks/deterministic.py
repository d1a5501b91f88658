"""`check_deterministic`: two runs from one seed are equal bit for bit."""

from __future__ import annotations

from typing import Any

from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing.checks import evidence
from tpu_estimator_compat.testing.checks.finding import Finding, differing, equal, raise_if_any
from tpu_estimator_compat.testing.results import Result
from tpu_estimator_compat.testing.running import of_subject
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject


def check_deterministic(
    model_fn: ModelFn,
    features: Any,
    labels: Any = None,
    params: Any = None,
    *,
    steps: int = 3,
    replicas: int = 1,
    seed: int = SEED,
    use_tpu: bool = True,
) -> None:
    """Trains twice from the same seed, and fails unless all values are equal.

    Python's and NumPy's own random numbers go on from one training to the next, so they differ, as
    in two processes.

    Example:
      testing.check_deterministic(model_fn, images, digits)

    Args:
      model_fn, features, labels, params, steps, replicas, seed, use_tpu: as for `testing.run`.

    Raises:
      AssertionError: initial values, losses or trained values differ, by name.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    subject = Subject(model_fn, features, labels, params, use_tpu, seed)
    first, second = (of_subject(subject, ModeKeys.TRAIN, replicas, steps) for _ in range(2))
    raise_if_any("check_deterministic", _differences(first, second))


def _differences(first: Result, second: Result) -> list[Finding]:
    names = sorted(first.before.keys() ^ second.before.keys())
    if names:
        advice = "name variables by what does not change between calls, not by a counter or a set"
        return [
            Finding(f"{name}: a variable of one call of model_fn only.", advice) for name in names
        ]
    advice = "draw initial values with TensorFlow's initializers, or with a seeded NumPy generator"
    initial = differing(first.before, second.before)
    if initial:
        return [
            Finding(
                f"{name}: its initial values differ between two trainings.",
                advice,
                evidence.handle_of(first.graph, name),
            )
            for name in initial
        ]
    pairs = zip(first.losses, second.losses, strict=True)
    steps = [i for i, pair in enumerate(pairs, 1) if not equal(*pair)]
    names = differing(first.after, second.after)
    if not steps and not names:
        return []
    said = "The initial values are equal. "
    if steps:
        said += f"The loss differs from step {steps[0]} on. "
    said += f"Different in the end: {', '.join(names) or 'the loss alone'}."
    python = [op for op in evidence.needed([first.spec.train_op]) if "PyFunc" in op.type]
    advice = (
        "draw random numbers with TensorFlow's operations, not with NumPy's or Python's while "
        "model_fn runs or in a py_func"
    )
    return [Finding(said, advice, python[0] if python else None)]
