"""What differs first, and the verdict, for runs that differ in one thing."""

import dataclasses

import numpy as np
import pytest

from tpu_estimator_compat.compare.differences import Bounds, array, curve
from tpu_estimator_compat.compare.evidence import Evidence
from tpu_estimator_compat.compare.report import Agreement, Curve, Side, Stage, Verdict

from .evidences import changed, evidence, gradient_of, judged, stepped


def test_equal_runs_are_the_same():
    report = judged(evidence())
    assert (report.verdict, report.first_difference) == (Verdict.SAME, None)
    assert report.steps == 3


def test_rounding():
    run = evidence()
    values = {n: v * np.float32(1 + 1e-6) for n, v in run.variables.items()}
    report = judged(dataclasses.replace(run, variables=values))
    assert (report.verdict, report.first_difference) == (Verdict.ROUNDING, None)


def test_input():
    values = evidence().input["features"] + 1
    report = judged(changed("input", features=values))
    assert report.verdict is Verdict.DIFFERENT
    assert report.first_difference.stage is Stage.INPUT
    assert report.first_difference.names == ("features",)


def test_loss_of_the_first_step():
    report = judged(evidence(loss=Curve((1, 2, 3), (1.6, 1.25, 1.0))))
    assert report.first_difference.stage is Stage.FORWARD
    assert "1.6 instead of 1.5" in report.first_difference.what


def test_gradient():
    run = evidence()
    update = stepped(run.start, gradient_of(run), times=2.0)
    report = judged(evidence(first_update=update))
    assert report.first_difference.stage is Stage.GRADIENT
    assert "2 times as large" in report.first_difference.what


def test_learning_rate():
    run = evidence()
    update = stepped(run.start, gradient_of(run), rate=0.2)
    update["norm/moving_mean"] = run.first_update["norm/moving_mean"]
    report = judged(evidence(first_update=update))
    assert report.first_difference.stage is Stage.UPDATE
    assert "changes 2 times as much: the learning rate" in report.first_difference.what
    assert set(report.first_difference.names) == {"dense/kernel", "dense/bias"}


def test_rule_of_the_optimizer():
    """Equal slots, and another update of each element."""
    run = evidence()
    values = {}
    for name in ("dense/kernel", "dense/bias"):
        change = run.first_update[name] - run.start[name]
        values[name] = run.start[name] + change / (np.abs(change) + np.float32(0.1))
    report = judged(changed("first_update", **values))
    assert report.first_difference.stage is Stage.UPDATE
    assert "epsilon" in report.first_difference.what


def test_dropped_update():
    run = evidence()
    report = judged(changed("first_update", **{"norm/moving_mean": run.start["norm/moving_mean"]}))
    assert report.first_difference.stage is Stage.UPDATE
    assert report.first_difference.names == ("norm/moving_mean",)
    assert "an update does not run" in report.first_difference.what


def test_diverging_later():
    run = evidence()
    values = {"dense/kernel": run.variables["dense/kernel"] * 2}
    report = judged(
        dataclasses.replace(
            changed("variables", **values), loss=Curve((1, 2, 3), (1.5, 1.25, 1.01))
        )
    )
    assert (report.verdict, report.first_difference.step) == (Verdict.DIVERGES, 3)
    assert report.first_difference.names == ("dense/kernel",)
    assert "diverges from step 3 on" in report.summary


def test_other_input_later():
    """Where the loss diverges because the batch is another one, the batch is named."""
    sums = ({"features": 1}, {"features": 9}, {"features": 3})
    report = judged(evidence(loss=Curve((1, 2, 3), (1.5, 1.3, 1.0)), checksums=sums))
    assert (report.first_difference.stage, report.first_difference.step) == (Stage.INPUT, 2)


def test_fewer_steps():
    report = judged(evidence(loss=Curve((1, 2), (1.5, 1.25))))
    assert (report.verdict, report.first_difference.step) == (Verdict.DIVERGES, 3)


@pytest.mark.parametrize(
    ("kind", "name", "value", "stage"),
    [
        ("evaluations", "1/accuracy", np.asarray(0.6, np.float32), Stage.EVALUATION),
        ("predictions", "2/class", np.arange(4)[::-1], Stage.PREDICTION),
    ],
)
def test_results(kind, name, value, stage):
    report = judged(changed(kind, **{name: value}))
    assert (report.first_difference.stage, report.first_difference.names) == (stage, (name,))


def test_files():
    report = judged(evidence(names={"tags of events": ("loss", "more")}))
    assert report.first_difference.stage is Stage.FILES
    assert report.first_difference.names == ("more",)


def test_nothing_in_common():
    report = judged(Evidence(Side("new", "/new")), Evidence(Side("old", "/old")))
    assert report.verdict is Verdict.UNKNOWN
    assert "Nothing was found" in report.unknown


def test_tolerance_is_a_multiple_of_the_yardstick():
    old = np.asarray([1.0, 2.0], np.float32)
    yard = np.asarray([1.0, 2.0 + 2e-5], np.float32)
    within, beyond = (np.asarray([1.0, 2.0 + d], np.float32) for d in (1e-4, 1e-3))
    assert array("v", old, within, [yard], Bounds(10.0)).agreement is Agreement.ROUNDING
    assert array("v", old, beyond, [yard], Bounds(10.0)).agreement is Agreement.DIFFERENT


def test_rounding_adds_up_over_steps():
    """Once the yardstick has differed, later steps may differ as much."""
    old = Curve((1, 2, 3), (1.0, 1.0, 1.0))
    yard = Curve((1, 2, 3), (1.0, 1.001, 1.0))
    found = curve("loss", old, Curve((1, 2, 3), (1.0, 1.0, 1.005)), [yard], Bounds(10.0))
    assert found.agreement is Agreement.ROUNDING
    found = curve("loss", old, Curve((1, 2, 3), (1.005, 1.0, 1.0)), [yard], Bounds(10.0))
    assert (found.agreement, found.first_step) == (Agreement.DIFFERENT, 1)


@pytest.mark.parametrize(
    ("old", "new", "agreement"),
    [
        ([np.nan, 1.0], [np.nan, 1.0], Agreement.EQUAL),
        ([np.nan, 1.0], [0.0, 1.0], Agreement.DIFFERENT),
        ([np.inf, 1.0], [np.inf, 1.0], Agreement.EQUAL),
        ([], [], Agreement.EQUAL),
    ],
)
def test_numbers_that_are_not_finite(old, new, agreement):
    a, b = (np.asarray(x, np.float32) for x in (old, new))
    assert array("v", a, b, [], Bounds(10.0)).agreement is agreement


def test_other_shape_or_dtype():
    old = np.zeros(3, np.float32)
    for new in (np.zeros(4, np.float32), np.zeros(3)):
        found = array("v", old, new, [], Bounds(10.0))
        assert found.agreement is Agreement.DIFFERENT
        assert "instead of float32[3]" in found.note
