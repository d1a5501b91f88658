"""A script on the original and here, unchanged and with one line changed: found, and named."""

import functools
import pathlib

import pytest
from support.original import Original
from support.sharing import shared

from tpu_estimator_compat.tools.compare import comparing, evidence, judgement, runs
from tpu_estimator_compat.tools.compare.report import Report, Stage, Verdict

pytestmark = [pytest.mark.slow, pytest.mark.parity]

SUBJECT = pathlib.Path(__file__).with_name("subject.py")
STEPS = 12


def runner(folder: pathlib.Path, script: pathlib.Path = SUBJECT) -> runs.Runner:
    arguments = (str(folder / "users_model"), str(folder / "users_export"))
    given = runs.Script(str(script), arguments)
    return runs.Runner(given, folder / "runs", STEPS, 300, first_step=True)


@pytest.fixture
def truth(original: Original, tmp_path_factory) -> tuple[evidence.Evidence, comparing.Yardstick]:
    def make(folder: pathlib.Path) -> None:
        asked = functools.partial(runner(folder).original, original.python)
        old = asked("original", None)
        comparing.yardstick(old, asked, old.side.folder)

    folder = shared(tmp_path_factory, "compare-truth", make)
    read = functools.partial(evidence.of_run, name="original")
    old = read(folder / "runs" / "original")

    def made(name: str, start: str, disturb: int | None = None) -> evidence.Evidence:
        return read(folder / "runs" / runs.folder_name(name))

    return old, comparing.yardstick(old, made, "")


@pytest.fixture
def judged(truth, tmp_path):
    def of(before: str = "", after: str = "") -> Report:
        old, measure = truth
        text = SUBJECT.read_text()
        assert before in text
        script = tmp_path / "changed.py"
        script.write_text(text.replace(before, after) if before else text)
        new = runner(tmp_path, script).here("new", old.side.folder)
        assert new.side.failure is None, new.side.failure
        assert not list(tmp_path.glob("users_*"))  # nothing of the user's is touched
        return judgement.judge(old, new, measure.runs, measure.tolerance)

    return of


def test_unchanged(judged):
    report = judged()
    assert report.first_difference is None, report.summary
    assert report.steps == STEPS
    assert report.tolerance.deterministic
    assert [s.name for s in report.scalars] == ["learning_rate"]
    assert {c.name for c in report.evaluations} == {"1/accuracy", "1/global_step", "1/loss"}
    assert [c.name for c in report.predictions] == ["2/logits"]
    tags, signatures = sorted(report.names, key=lambda names: "tags" not in names.what)
    assert "model_dir-0: loss" in tags.both
    assert any("serving_default: output" in name for name in signatures.both)


@pytest.mark.parametrize(
    ("before", "after", "stage", "word"),
    [
        ("RATE = 0.01", "RATE = 0.0101", Stage.UPDATE, "the learning rate differs"),
        ("EPSILON = 1e-7", "EPSILON = 1e-4", Stage.UPDATE, "epsilon"),
        (
            "tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS))",
            "tf.control_dependencies([])",
            Stage.UPDATE,
            "mean changes in the first step of one run only: an update does not run",
        ),
        ("rate=0.25", "rate=0.26", Stage.FORWARD, "the loss of the first step"),
        ("RandomState(0)", "RandomState(1)", Stage.INPUT, "of the first batch"),
    ],
)
def test_one_line(judged, before, after, stage, word):
    report = judged(before, after)
    assert report.verdict is Verdict.DIFFERENT
    assert report.first_difference.stage is stage, report.summary
    assert word in report.first_difference.what
    if stage is Stage.FORWARD:  # the line that was changed is named
        source = report.first_difference.source
        assert SUBJECT.read_text().splitlines()[source.line - 1].strip() == source.code
        assert before in source.code
