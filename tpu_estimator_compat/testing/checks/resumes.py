"""`check_resumes`: an interrupted training goes on as if it had run through."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing.checks import evidence
from tpu_estimator_compat.testing.checks.finding import Finding, close, differing, raise_if_any
from tpu_estimator_compat.testing.devices import check_count
from tpu_estimator_compat.testing.results import Result
from tpu_estimator_compat.testing.running import of_subject
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject

_SAVE = (
    "keep it in a variable of GLOBAL_VARIABLES, and let no Saver, Scaffold or init_fn of model_fn "
    "leave it out or set it anew"
)
_LOCAL = (
    "no checkpoint has a local variable: keep it in a variable of GLOBAL_VARIABLES, such as "
    "tf.get_variable(name, shape, trainable=False)"
)
_ELSEWHERE = (
    "keep what a step needs from the steps before in variables: not in Python, in a py_func, or in "
    "the order of calls"
)
_RANDOM = (
    "random numbers begin anew: switch dropout and noise off for this check, or draw them by "
    "tf.random.stateless_... from the global step"
)
_RTOL, _ATOL = 1e-5, 1e-7


def check_resumes(
    model_fn: ModelFn,
    features: Any = None,
    labels: Any = None,
    params: Any = None,
    *,
    batch_size: int | None = None,
    input_fn: Callable[..., Any] | None = None,
    steps: int = 2,
    replicas: int = 1,
    seed: int = SEED,
    use_tpu: bool = True,
) -> None:
    """Trains in one go and with an interruption, and fails unless both end in the same place.

    Checkpoints have the position of the input, as with `RunConfig(save_input_state=True)`.

    Example:
      testing.check_resumes(model_fn, images, digits, batch_size=8)

    Args:
      model_fn, features, labels, params, replicas, seed, use_tpu: as for `testing.run`.
      batch_size: examples of a step of all replicas, a part of those given; None for all.
      input_fn: gives the batches instead of the arrays, which are None then; it needs `batch_size`.
      steps: before the interruption, and after it.

    Raises:
      AssertionError: variables that were not restored, or that end otherwise, with the cause if it
        is seen: random numbers, an input that goes on elsewhere.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    check_count(steps, "steps")
    subject = Subject(
        model_fn,
        features,
        labels,
        params,
        use_tpu,
        seed,
        examples_per_step=batch_size,
        own_input_fn=input_fn,
        save_input_state=True,
    )
    with tempfile.TemporaryDirectory(prefix="testing_") as folder:
        through, parts = (os.path.join(folder, name) for name in ("through", "parts"))
        whole = of_subject(subject, ModeKeys.TRAIN, replicas, 2 * steps, through)
        first, second = (
            of_subject(subject, ModeKeys.TRAIN, replicas, steps, parts) for _ in range(2)
        )
    raise_if_any("check_resumes", _lost(first, second) or _differences(whole, first, second))


def _lost(first: Result, second: Result) -> list[Finding]:
    return [
        Finding(
            f"{name}: the checkpoint does not restore it.",
            _SAVE,
            evidence.handle_of(second.graph, name),
        )
        for name in differing(first.after, second.before)
    ]


def _differences(whole: Result, first: Result, second: Result) -> list[Finding]:
    ends = whole.after, second.after
    names = [n for n in differing(*ends) if not close(ends[0][n], ends[1][n], _RTOL, _ATOL)]
    losses = np.concatenate([first.losses, second.losses])
    if not names and np.allclose(whole.losses, losses, _RTOL, equal_nan=True):
        return []
    shown = [f"{value:g}" for value in (whole.losses[len(first.losses)], second.losses[0])]
    said = f"Different in the end: {', '.join(names) or 'losses'}."
    if shown[0] != shown[1]:
        said = f"After the interruption the loss is {shown[1]}, and without one {shown[0]}. {said}"
    for advice, causes in (
        (_RANDOM, evidence.draws_random_numbers(evidence.of_loss(second))),
        (_LOCAL, evidence.local_variables(second)),
    ):
        if causes:
            return [Finding(said, advice, op) for op in causes]
    return [Finding(said, _ELSEWHERE)]
