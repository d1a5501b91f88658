"""`compare --dirs` on damaged files: it cannot be told, and is said; never the same, in silence."""

import os
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools.compare import comparing, judgement
from tpu_estimator_compat.tools.compare.report import Verdict


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    summary = tf.compat.v1.Summary
    with tf.Graph().as_default(), tf.compat.v1.summary.FileWriter(str(folder)) as writer:
        for step in range(1, 40):
            writer.add_summary(summary(value=[summary.Value(tag="loss", simple_value=1.0)]), step)
        tf.compat.v1.get_variable("w", initializer=np.arange(100.0))
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            saver = tf.compat.v1.train.Saver(save_relative_paths=True)
            saver.save(session, str(folder / "model.ckpt"), global_step=39)
    tf.saved_model.save(tf.Module(), str(folder / "export" / "1"))
    return folder


def flip(path: pathlib.Path, at: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0xFF
    path.write_bytes(data)


def replace_by_pipe(path: pathlib.Path) -> None:
    path.unlink()
    os.mkfifo(path)


def of_unknown_type(path: pathlib.Path) -> None:
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    model.meta_graphs[0].signature_def["x"].inputs["y"].dtype = 9999
    path.write_bytes(model.SerializeToString())


def as_event(data: bytes):
    def write(path: pathlib.Path) -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            writer.write(data)

    return write


EVENTS, MODEL = "*tfevents*", "export/1/saved_model.pb"
DATA, INDEX = "model.ckpt-39.data-*", "model.ckpt-39.index"
DAMAGE = {
    "events flipped": (EVENTS, flip),
    "events flipped at the begin": (EVENTS, lambda path: flip(path, 0.0)),
    "events of other bytes": (EVENTS, lambda path: path.write_bytes(b"not events at all" * 9)),
    "events of another message": (EVENTS, as_event(b"\xff\xff\xff")),
    "events are a pipe": (EVENTS, replace_by_pipe),
    "model cut": (MODEL, lambda path: path.write_bytes(path.read_bytes()[:-20])),
    "model empty": (MODEL, lambda path: path.write_bytes(b"")),
    "model of other bytes": (MODEL, lambda path: path.write_bytes(b"\xff" * 99)),
    "model of an unknown type": (MODEL, of_unknown_type),
    "model is a pipe": (MODEL, replace_by_pipe),
    "data flipped": (DATA, flip),
    "data cut": (DATA, lambda path: path.write_bytes(b"")),
    "data is a pipe": (DATA, replace_by_pipe),
    "index flipped": (INDEX, flip),
    "index is gone": (INDEX, pathlib.Path.unlink),
    "state of other bytes": ("checkpoint", lambda path: path.write_bytes(b"\xff" * 99)),
    "state is a pipe": ("checkpoint", replace_by_pipe),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGE.values(), ids=DAMAGE)
def test_damage_cannot_be_told_and_is_said(run, tmp_path, name, damage, capsys):
    shutil.copytree(run, tmp_path / "new")
    [path] = (tmp_path / "new").glob(name)
    damage(path)
    assert main(["compare", "--dirs", str(run), str(tmp_path / "new")]) == 2
    assert str(tmp_path / "new") in capsys.readouterr().err


def test_the_undamaged_run_is_the_same(run):
    assert main(["compare", "--dirs", str(run), str(run)]) == 0


def test_events_that_are_cut_are_said(run, tmp_path, capsys):
    """They may be those of a training that was killed and went on: what is there counts."""
    shutil.copytree(run, tmp_path / "new")
    [path] = (tmp_path / "new").glob(EVENTS)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 3])
    report = comparing.directories(run, tmp_path / "new")
    assert any("ends within a record" in note for note in report.notes)


def test_a_checkpoint_that_a_training_removes_meanwhile_is_no_damage(run, tmp_path, monkeypatch):
    """What is compared is the checkpoint that it has saved instead."""
    new = tmp_path / "new"
    shutil.copytree(run, new)
    (new / "temp-1600000000").mkdir()
    (new / "temp-1600000000" / "saved_model.pb").write_text("half written")
    judge, calls = judgement.judge, []

    def late(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            for path in new.glob("model.ckpt-39.*"):
                path.rename(new / path.name.replace("39", "40"))
            state = (run / "checkpoint").read_text()
            (new / "checkpoint").write_text(state.replace("39", "40"))
        return judge(*arguments)

    monkeypatch.setattr(judgement, "judge", late)
    report = comparing.directories(run, new)
    assert len(calls) == 2
    assert report.verdict is Verdict.SAME
