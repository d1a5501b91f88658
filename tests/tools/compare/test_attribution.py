"""Who makes a difference: sessions of this TensorFlow tell, as a third side."""

import dataclasses

import numpy as np
import pytest

from tpu_estimator_compat.tools.compare.attribution import attributed
from tpu_estimator_compat.tools.compare.evidence import Evidence
from tpu_estimator_compat.tools.compare.report import Curve, Report, Side, Stage, Verdict
from tpu_estimator_compat.tools.compare.showing import shown

from .evidences import changed, evidence, judged

ZEROS = np.zeros(3, np.float32)


def on(version: str, run: Evidence, script: str = "train.py") -> Evidence:
    side = Side("run", "/run", {"tensorflow": version}, script=(script,))
    return dataclasses.replace(run, side=side)


def of_three(new: Evidence, session: Evidence, script: str = "train.py") -> Report:
    """The report on `new`, where the original is unchanged."""
    old, new = on("2.15.1", evidence()), on("2.21.0", new, script)
    return attributed(judged(new, old), judged(new, on("2.21.0", session)))


CHANGES = {
    "loss": changed("curves", loss=Curve((1, 2, 3), (1.5, 1.25, 2.0))),
    "scalars": changed("curves", learning_rate=Curve((1, 2, 3), (0.1, 0.1, 0.2))),
    "input": changed("input", features=np.ones([2, 4], np.float32)),
    "first_update": changed("first_update", **{"dense/bias": ZEROS}),
    "variables": changed("variables", **{"dense/bias": ZEROS}),
    "evaluations": changed("evaluations", **{"1/accuracy": np.asarray(0.7, np.float32)}),
    "predictions": changed("predictions", **{"2/class": np.arange(1, 5)}),
    "names": dataclasses.replace(evidence(), names={"tags of events": ("loss", "more")}),
}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("by", ["TensorFlow", "this package"])
def test_each_kind(kind, by):
    new = CHANGES[kind]
    report = of_three(new, new if by == "TensorFlow" else evidence())
    compared = [report.loss] if kind == "loss" else getattr(report, kind)
    assert [each.by for each in compared if each.by] == [by]
    assert report.first_difference.by == by
    assert f", by {by}" in shown(report).text(200)
    assert f", by {by}" in shown(report).page()
    assert report.notes[-1].endswith(
        "differ from 2.15.1 in the same way, and else by this package."
    )


def test_a_difference_of_each():
    """TensorFlow changed the metric; this package, earlier, a variable."""
    metric = {"1/accuracy": np.asarray(0.7, np.float32)}
    new = changed("variables", **{"dense/bias": ZEROS})
    new = dataclasses.replace(new, evaluations=metric)
    report = of_three(new, changed("evaluations", **metric))
    assert {each.name: each.by for each in report.variables if each.by} == {
        "dense/bias": "this package"
    }
    assert report.evaluations[0].by == "TensorFlow"
    assert (report.first_difference.stage, report.first_difference.by) == (
        Stage.LATER,
        "this package",
    )


def test_the_first_difference_is_before_this_packages():
    new = changed("input", features=np.ones([2, 4], np.float32))
    session = dataclasses.replace(new, variables={**new.variables, "dense/bias": ZEROS})
    report = of_three(new, session)
    assert report.first_difference.by == "TensorFlow"
    assert not [each for each in report.variables if each.by]


def test_another_value_than_both():
    """TensorFlow may have changed it, too: it is this package that differs now."""
    session = changed("variables", **{"dense/bias": ZEROS + 1})
    report = of_three(changed("variables", **{"dense/bias": ZEROS}), session)
    assert report.first_difference.by == "this package"


def test_a_loss_of_the_original_alone():
    new = evidence(curves={"learning_rate": evidence().curves["learning_rate"]})
    assert of_three(new, new).loss.by == "TensorFlow"
    assert of_three(new, evidence()).loss.by == "this package"


def test_a_new_script():
    """Sessions run it, too: the old one is the original's alone."""
    report = of_three(CHANGES["loss"], CHANGES["loss"], "moved.py")
    assert report.loss.by == "TensorFlow or script"


def test_sessions_that_fail():
    new = CHANGES["loss"]
    report = judged(new)
    failed = dataclasses.replace(report, verdict=Verdict.UNKNOWN, unknown="the session run failed")
    found = attributed(report, failed)
    assert found.notes == (
        "Sessions cannot tell who makes the differences: the session run failed",
    )
    assert dataclasses.replace(found, notes=()) == report


def test_sessions_in_the_originals_place():
    """The line below the verdict says so."""
    report = dataclasses.replace(judged(evidence()), instead="With sessions, since there is <no>.")
    assert shown(report).text().splitlines()[1] == "  With sessions, since there is <no>."
    assert "<p>With sessions, since there is &lt;no&gt;.</p>" in shown(report).page()
