import dataclasses

import numpy as np
import pytest

from tpu_estimator_compat.tools.compare.report import Curve, Stage, Verdict

from .evidences import changed, evidence, gradient_of, judged, stepped


def test_input():
    values = evidence().input["features"] + 1
    report = judged(changed("input", features=values))
    assert report.verdict is Verdict.DIFFERENT
    assert report.first_difference.stage is Stage.INPUT
    assert report.first_difference.names == ("features",)


def test_loss_of_the_first_step():
    report = judged(changed("curves", loss=Curve((1, 2, 3), (1.6, 1.25, 1.0))))
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
    curves = {"loss": Curve((1, 2, 3), (1.5, 1.25, 1.01))}
    report = judged(dataclasses.replace(changed("variables", **values), curves=run.curves | curves))
    assert (report.verdict, report.first_difference.step) == (Verdict.DIVERGES, 3)
    assert report.first_difference.names == ("dense/kernel",)
    assert "diverges from step 3 on" in report.summary


def test_other_input_later():
    """Where the loss diverges because the batch is another one, the batch is named."""
    sums = ({"features": 1}, {"features": 9}, {"features": 3})
    run = changed("curves", loss=Curve((1, 2, 3), (1.5, 1.3, 1.0)))
    report = judged(dataclasses.replace(run, checksums=sums))
    assert (report.first_difference.stage, report.first_difference.step) == (Stage.INPUT, 2)


def test_fewer_steps():
    report = judged(changed("curves", loss=Curve((1, 2), (1.5, 1.25))))
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
