import dataclasses

import numpy as np
import pytest

from tpu_estimator_compat.tools.compare import runs
from tpu_estimator_compat.tools.compare.differences import array, arrays, curve
from tpu_estimator_compat.tools.compare.evidence import Evidence
from tpu_estimator_compat.tools.compare.report import (
    Agreement,
    Curve,
    Side,
    Tolerance,
    Verdict,
)

from .evidences import evidence, judged

ALLOWED = Tolerance("given", 10.0, 0.0)


def test_tolerance_is_a_multiple_of_the_yardstick():
    old = np.asarray([1.0, 2.0], np.float32)
    yard = np.asarray([1.0, 2.0 + 2e-5], np.float32)
    within, beyond = (np.asarray([1.0, 2.0 + d], np.float32) for d in (1e-4, 1e-3))
    assert array("v", old, within, [yard], ALLOWED).agreement is Agreement.ROUNDING
    assert array("v", old, beyond, [yard], ALLOWED).agreement is Agreement.DIFFERENT


def test_rounding_adds_up_over_steps():
    """Once the yardstick has differed, later steps may differ as much."""
    old = Curve((1, 2, 3), (1.0, 1.0, 1.0))
    yard = Curve((1, 2, 3), (1.0, 1.001, 1.0))
    found = curve("loss", old, Curve((1, 2, 3), (1.0, 1.0, 1.005)), [yard], ALLOWED)
    assert found.agreement is Agreement.ROUNDING
    found = curve("loss", old, Curve((1, 2, 3), (1.005, 1.0, 1.0)), [yard], ALLOWED)
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
    assert array("v", a, b, [], ALLOWED).agreement is agreement


def test_other_shape_or_dtype():
    old = np.zeros(3, np.float32)
    for new in (np.zeros(4, np.float32), np.zeros(3)):
        found = array("v", old, new, [], ALLOWED)
        assert found.agreement is Agreement.DIFFERENT
        assert "instead of float32[3]" in found.note


def test_equal_runs_are_the_same():
    report = judged(evidence())
    assert (report.verdict, report.first_difference) == (Verdict.SAME, None)
    assert report.steps == 3


def test_rounding():
    run = evidence()
    values = {n: v * np.float32(1 + 1e-6) for n, v in run.variables.items()}
    report = judged(dataclasses.replace(run, variables=values))
    assert (report.verdict, report.first_difference) == (Verdict.ROUNDING, None)


def test_the_worst_arrays_come_first():
    old = dict.fromkeys(("a", "b", "c", "gone"), np.float32([1.0]))
    new = {"a": np.float32([1.0]), "b": np.float32([1.5]), "c": np.float32([1.0000001])}
    assert [c.name for c in arrays(old, new, [], ALLOWED)] == ["gone", "b", "c", "a"]


def test_nothing_in_common():
    report = judged(Evidence(Side("new", "/new")), Evidence(Side("old", "/old")))
    assert report.verdict is Verdict.UNKNOWN
    assert "Nothing was found" in report.unknown


def test_flags_that_name_folders_are_replaced(tmp_path):
    given = ("--model_dir=/m", "--output_dir", "/m", "-job_dir=/j", "--job-dir", "/k")
    others = ("--data_dir=/d", "model_dir=/m", "train")
    assert runs.Script("x.py", (*given, *others, "--output_dir")).arguments_in(tmp_path) == [
        f"--model_dir={tmp_path}/model_dir-0",
        f"--output_dir={tmp_path}/model_dir-0",
        f"-job_dir={tmp_path}/model_dir-1",
        f"--job-dir={tmp_path}/model_dir-2",
        *others,
        f"--output_dir={tmp_path}/model_dir-3",
    ]


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("tf", runs.Setting("tensorflow")),
        ("jax", runs.Setting("jax")),
        ("session", runs.Setting("session")),
        ("jit", runs.Setting(jit=True)),
        ("replicas=4", runs.Setting(replicas=4)),
    ],
)
def test_settings(text, setting):
    assert runs.Setting.parse(text) == setting
