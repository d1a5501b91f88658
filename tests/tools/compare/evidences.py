"""Evidence of runs of a small model, as numbers that a test can change."""

import dataclasses

import numpy as np

from tpu_estimator_compat.tools.compare import judgement
from tpu_estimator_compat.tools.compare.evidence import Evidence
from tpu_estimator_compat.tools.compare.report import Curve, Report, Side, Tolerance

RATE = 0.1
TRAINABLE = ("dense/kernel", "dense/bias")


def evidence(**changes: object) -> Evidence:
    """A run of three steps with a momentum optimizer, and moving averages."""
    numbers = np.random.RandomState(0)
    start = {
        "dense/kernel": numbers.randn(4, 3).astype(np.float32),
        "dense/bias": numbers.randn(3).astype(np.float32),
        "norm/moving_mean": np.zeros(3, np.float32),
    }
    gradient = {n: numbers.randn(*v.shape).astype(np.float32) for n, v in start.items()}
    start |= {f"{name}/Momentum": np.zeros_like(start[name]) for name in TRAINABLE}
    update = stepped(start, gradient)
    given = {
        "side": Side("run", "/run"),
        "curves": {
            "learning_rate": Curve((1, 2, 3), (RATE,) * 3),
            "loss": Curve((1, 2, 3), (1.5, 1.25, 1.0)),
        },
        "input": {"features": numbers.randn(2, 4).astype(np.float32)},
        "checksums": ({"features": 1}, {"features": 2}, {"features": 3}),
        "trainable": frozenset(TRAINABLE),
        "start": start,
        "first_update": update,
        "variables": {name: value * np.float32(1.5) for name, value in update.items()},
        "evaluations": {"1/accuracy": np.asarray(0.5, np.float32)},
        "predictions": {"2/class": np.arange(4)},
        "names": {"tags of events": ("loss",)},
    }
    return Evidence(**{**given, **changes})


def stepped(
    start: dict[str, np.ndarray],
    gradient: dict[str, np.ndarray],
    rate: float = RATE,
    times: float = 1.0,
) -> dict[str, np.ndarray]:
    """Variables after a first step: slots keep `times` the gradient, `rate` of it is taken away."""
    kept = {name: np.float32(times) * g for name, g in gradient.items()}
    found = {name: start[name] - np.float32(rate) * kept[name] for name in gradient}
    return {**found, **{f"{name}/Momentum": kept[name] for name in TRAINABLE}}


def gradient_of(run: Evidence) -> dict[str, np.ndarray]:
    """What a run's first step took away, before the learning rate."""
    names = [name for name in run.start if not name.endswith("/Momentum")]
    return {name: (run.start[name] - run.first_update[name]) / RATE for name in names}


def judged(new: Evidence, old: Evidence | None = None) -> Report:
    """The report on a run, against the unchanged one."""
    return judgement.judge(old or evidence(), new, [], Tolerance("given", 10.0, 1e-5))


def changed(kind: str, **values: np.ndarray | Curve) -> Evidence:
    """The run with other arrays or curves of a kind."""
    run = evidence()
    return dataclasses.replace(run, **{kind: {**getattr(run, kind), **values}})
