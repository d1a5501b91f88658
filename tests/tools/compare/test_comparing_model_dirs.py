import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.tools.compare import comparing
from tpu_estimator_compat.tools.compare.report import Report, Stage, Verdict
from tpu_estimator_compat.tools.compare.showing import shown


def write(
    folder: pathlib.Path,
    losses: list[float],
    weight: float = 0.5,
    accuracy: float = 0.75,
    speed: float = 10.0,
) -> pathlib.Path:
    with tf.Graph().as_default():
        for name, scalars in ((".", losses), ("eval", [accuracy])):
            with tf.compat.v1.summary.FileWriter(str(folder / name)) as writer:
                for step, value in enumerate(scalars, 1):
                    tags = {"loss": value, "global_step/sec": speed}
                    tags = tags if name == "." else {"accuracy": value}
                    for tag, number in tags.items():
                        writer.add_summary(_summary(tag, number), step)
        variable = tf.compat.v1.get_variable("w", initializer=np.full(3, weight, np.float32))
        with tf.compat.v1.Session() as session:
            session.run(variable.initializer)
            path = str(folder / "model.ckpt")
            tf.compat.v1.train.Saver().save(session, path, global_step=len(losses))
    return folder


def _summary(tag: str, value: float) -> tf.compat.v1.Summary:
    return tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag=tag, simple_value=value)])


@pytest.fixture
def old(tmp_path) -> pathlib.Path:
    return write(tmp_path / "old", [2.0, 1.0, 0.5])


def compared(old: pathlib.Path, new: pathlib.Path) -> Report:
    report = comparing.directories(old, new)
    assert Report.from_json(shown(report).json()) == report
    return report


def test_same(old, tmp_path):
    """Speed is no result."""
    report = compared(old, write(tmp_path / "new", [2.0, 1.0, 0.5], speed=99.0))
    assert (report.verdict, report.steps) == (Verdict.SAME, 3)
    assert [c.name for c in report.variables] == ["w"]
    assert [c.name for c in report.evaluations] == ["eval/accuracy at step 1"]


def test_within_rtol(old, tmp_path):
    new = write(tmp_path / "new", [2.0, 1.00001, 0.5])
    assert compared(old, new).verdict is Verdict.ROUNDING
    assert comparing.directories(old, new, rtol=1e-6).verdict is Verdict.DIVERGES


def test_diverging(old, tmp_path):
    report = compared(old, write(tmp_path / "new", [2.0, 1.1, 0.4], weight=0.6))
    assert (report.verdict, report.first_difference.step) == (Verdict.DIVERGES, 2)
    assert report.first_difference.names == ("w",)


def test_evaluation(old, tmp_path):
    report = compared(old, write(tmp_path / "new", [2.0, 1.0, 0.5], accuracy=0.8))
    assert report.first_difference.stage is Stage.EVALUATION


def test_an_event_file_alone(old, tmp_path):
    new = write(tmp_path / "new", [2.0, 1.0, 0.5])
    [events] = new.glob("*tfevents*")
    report = compared(next(old.glob("*tfevents*")), events)
    assert (report.verdict, report.variables) == (Verdict.SAME, ())


def test_event_file_that_breaks_off(old, tmp_path):
    """As that of a training that was killed: what is there counts."""
    new = write(tmp_path / "new", [2.0, 1.0, 0.5])
    [events] = new.glob("*tfevents*")
    events.write_bytes(events.read_bytes()[:-5])
    assert compared(old, new).steps == 3


def test_no_run(old, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has neither event files with scalars nor a checkpoint"):
        comparing.directories(old, tmp_path / "empty")


def test_damaged_checkpoint_is_named(old, tmp_path):
    new = write(tmp_path / "new", [2.0, 1.0, 0.5])
    (new / "model.ckpt-3.index").write_bytes(b"no index")
    with pytest.raises(ValueError, match=r"model\.ckpt-3 cannot be read"):
        comparing.directories(old, new)
