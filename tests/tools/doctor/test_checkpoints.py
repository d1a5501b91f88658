"""A checkpoint is tried where it is to be kept, and nothing of that is left."""

import os

import pytest
import tensorflow as tf

from doctor.answers import all_well
from tpu_estimator_compat.tools.doctor import checkpoints
from tpu_estimator_compat.tools.doctor.probing import Outcome
from tpu_estimator_compat.tools.doctor.report import Status

WELL = Outcome(all_well()[checkpoints.observe])


def check(model_dir, outcome=WELL, write=True):
    """The finding, and the folder that the probe was given, in which it has left a file."""
    given = []

    def probe(arguments):
        given.append(arguments["folder"])
        if write:
            os.makedirs(given[0])
            with open(os.path.join(given[0], "left"), "w"):
                pass
        return outcome

    [finding] = checkpoints.check(model_dir, probe)
    return finding, given[0]


def test_what_is_made_is_deleted_and_nothing_else(tmp_path):
    (tmp_path / "model.ckpt-7.index").write_text("the user's")
    finding, folder = check(str(tmp_path))
    assert finding.status is Status.OK
    assert os.path.dirname(folder) == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.ckpt-7.index"]


@pytest.mark.parametrize("outcome", [WELL, Outcome(None, "was ended by SIGKILL.", "Look.")])
def test_folders_that_were_not_there(tmp_path, outcome):
    check(str(tmp_path / "a" / "b"), outcome)
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder():
    finding, folder = check(None)
    assert "a temporary folder: 14 variables" in finding.text
    assert not os.path.exists(os.path.dirname(folder))


def test_a_bucket():
    finding, folder = check("gs://bucket/runs/", write=False)
    assert finding.text.startswith("gs://bucket/runs/: 14 variables")
    assert folder.startswith("gs://bucket/runs/doctor_")
    finding, folder = check("gs://bucket/runs", Outcome(None, "hung.", "Look."), write=False)
    assert finding.status is Status.FAILURE
    assert f"If {folder} is there, delete it." in finding.advice


@pytest.mark.parametrize("key", ["differing", "lost"])
def test_variables_that_come_back_as_others(key):
    answer = {**WELL.answer, key: ["dense/kernel"]}
    finding, _ = check(None, Outcome(answer))
    assert finding.status is Status.FAILURE
    assert "such as dense/kernel" in finding.text


def test_a_checkpoint_that_is_damaged_is_found_out(tmp_path, monkeypatch):
    """Once where it is read, in this process; the probe itself deletes its folder."""
    load = tf.train.load_checkpoint

    class Damaged:
        def __init__(self, folder):
            self._reader = load(folder)

        def __getattr__(self, name):
            return getattr(self._reader, name)

        def get_tensor(self, name):
            return self._reader.get_tensor(name) + (name == "mlp/dense/kernel")

    well = checkpoints.observe(str(tmp_path / "doctor_000000000001"))
    assert (well["differing"], well["lost"]) == ([], [])
    assert well["variables"] == 14
    monkeypatch.setattr(tf.train, "load_checkpoint", Damaged)
    damaged = checkpoints.observe(str(tmp_path / "doctor_000000000002"))
    assert damaged["differing"] == ["mlp/dense/kernel"]
    assert list(tmp_path.iterdir()) == []
