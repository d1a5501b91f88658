"""What is left after a power failure is found, or said to be lost, and made whole again."""

import os
import pathlib
import shutil
import tempfile

import pytest
import tensorflow as tf
import tf_keras
from support.legacy_models import examples, finite_input_fn, make_estimator, train_input_fn

from tpu_estimator_compat import environment
from tpu_estimator_compat import estimator as tf_estimator
from tpu_estimator_compat.engine.checkpoint.state import candidates, is_whole
from tpu_estimator_compat.engine.export import directories
from tpu_estimator_compat.estimator import keras_models, schedule
from tpu_estimator_compat.tools import weight_map
from tpu_estimator_compat.tools.dry_run.folders import Folders

from .disks import NAMES, Disk
from .models import servable_model_fn, serving_input_receiver


def train(folder, max_steps, **config):
    config = {"save_checkpoints_steps": 2, "save_input_state": True, **config}
    estimator = make_estimator(folder, servable_model_fn, **config)
    estimator.train(train_input_fn, max_steps=max_steps)
    return estimator


def step_if_whole(path):
    """The step of a checkpoint of which every tensor can be read, and the input's position."""
    reader = tf.train.load_checkpoint(path)
    for name in reader.get_variable_to_shape_map():
        reader.get_tensor(name)
    position = pathlib.Path(f"{path}.input-00000-of-00001.data-00000-of-00001")
    assert position.stat().st_size > 0
    return int(reader.get_tensor("global_step"))


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """The disk of a training that keeps one checkpoint."""
    folder = tmp_path_factory.mktemp("disk") / "model"
    disk = Disk(folder)
    with pytest.MonkeyPatch.context() as patch, disk.recorded(patch):
        train(folder, 6, keep_checkpoint_max=1)
    return disk


@pytest.mark.parametrize("names", NAMES)
def test_at_any_moment_the_newest_checkpoint_is_whole(disk, tmp_path, names):
    steps = []
    for number, moment in enumerate(disk.moments):
        folder = moment.left(tmp_path / str(number), names=names)
        if (folder / "checkpoint").exists():
            steps.append(step_if_whole(candidates(str(folder))[0]))
        else:
            assert not steps, "the file `checkpoint` was there before"
    assert sorted(set(steps)) == [0, 2, 4, 6]
    assert steps == sorted(steps)


@pytest.mark.parametrize("names", ["synced", "all"])
def test_training_goes_on_after_the_failure(disk, tmp_path, caplog, names):
    folder = disk.moments[-8].left(tmp_path / "model", names=names)
    assert train(folder, 8).get_variable_value("global_step") == 8
    assert "cannot be read" not in caplog.text
    assert "is not there" not in caplog.text


def test_fit_and_hooks_of_the_user_save_in_the_same_order(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    disk = Disk(folder)
    with disk.recorded(monkeypatch):
        hooks = [tf.compat.v1.train.CheckpointSaverHook(str(folder), save_steps=2)]
        estimator = make_estimator(folder, keep_checkpoint_max=1)
        estimator.train(train_input_fn, max_steps=2, hooks=hooks)
        x, y = examples(16)
        estimator.keras_model().fit(x, y, batch_size=16, epochs=1, verbose=0)
    left = disk.moments[-1].left(tmp_path / "left", names="synced")
    assert make_estimator(left).get_variable_value("global_step") == 3


def test_events_are_on_the_disk_up_to_the_checkpoint(disk, tmp_path):
    folder = disk.moments[-1].left(tmp_path / "model", names="synced")
    [events] = folder.glob("events*")
    seen = [e.session_log.checkpoint_path for e in tf.compat.v1.train.summary_iterator(str(events))]
    assert sum(map(bool, seen)) >= 2  # of the saves before the last one


def test_a_file_system_that_refuses_ends_training_with_advice(tmp_path, monkeypatch):
    def refuse(descriptor):
        if "unfinished" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(
        tf.errors.ResourceExhaustedError, match=r"model\.ckpt-0.*See that the disk has room"
    ):
        train(tmp_path, 2, save_input_state=False, save_summary_steps=0)


def test_it_can_be_switched_off(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(os, "fsync", calls.append)
    monkeypatch.setenv(environment.SYNC_VARIABLE, "off")
    train(tmp_path, 2)
    assert calls == []


def test_an_export_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    synced = set()

    def rename(source, target, overwrite=False):
        files = list(pathlib.Path(os.fsdecode(source)).rglob("*"))
        assert len(files) == 3
        assert {path.stat().st_ino for path in files} <= synced
        renamed.append(target)

    renamed = []
    monkeypatch.setattr(os, "fsync", lambda d: synced.add(os.fstat(d).st_ino))
    monkeypatch.setattr(tf.io.gfile, "rename", rename)
    with directories.new_export(str(tmp_path)) as directory:
        variables = pathlib.Path(os.fsdecode(directory.temporary)) / "variables"
        variables.mkdir()
        for path in (variables / "variables.index", variables.parent / "saved_model.pb"):
            path.write_text("text")
    assert renamed == [directory.final]


@pytest.fixture(scope="module")
def two_checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    train(folder, 4)
    return folder


@pytest.fixture
def model_dir(tmp_path, two_checkpoints):
    return pathlib.Path(shutil.copytree(two_checkpoints, tmp_path / "model"))


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[:20],
    "zeros": lambda content: bytes(len(content)),
    "flipped": lambda content: bytes(b ^ 255 for b in content),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_replaced(model_dir, caplog, damage):
    data = model_dir / "model.ckpt-4.data-00000-of-00001"
    data.write_bytes(DAMAGES[damage](data.read_bytes()))
    estimator = train(model_dir, 4)
    assert "model.ckpt-4 cannot be read" in caplog.text
    assert step_if_whole(str(model_dir / "model.ckpt-4")) == 4
    caplog.clear()
    assert estimator.evaluate(train_input_fn, steps=1)["global_step"] == 4
    assert "cannot be read" not in caplog.text


@pytest.mark.parametrize("form", ["checkpoint", "saver"])
def test_damaged_first_values_of_a_keras_model_are_written_anew(tmp_path, caplog, form):
    def make():
        model = tf_keras.Sequential([tf_keras.layers.Dense(2, input_shape=(4,))])
        model.compile("sgd", "mse")
        keras_models.model_to_estimator(model, model_dir=str(tmp_path), checkpoint_format=form)

    make()
    data = tmp_path / "keras" / "keras_model.ckpt.data-00000-of-00001"
    data.write_bytes(b"")
    make()
    assert "keras_model.ckpt cannot be read" in caplog.text
    assert is_whole(str(tmp_path / "keras" / "keras_model.ckpt"))


@pytest.mark.parametrize("content", [b"", bytes(200), b'model_checkpoint_path: "mod', b"\xff\xfe"])
def test_a_damaged_list_of_checkpoints(model_dir, caplog, content):
    (model_dir / "checkpoint").write_bytes(content)
    assert train(model_dir, 6).get_variable_value("global_step") == 6
    assert "model/checkpoint cannot be read; found in the folder: steps [0, 2, 4]" in caplog.text


def evaluate(estimator):
    assert estimator.evaluate(train_input_fn, steps=1)["global_step"] == 2


def predict(estimator):
    next(estimator.predict(finite_input_fn(16)))


def export(estimator):
    estimator.export_saved_model(f"{estimator.model_dir}/exports", serving_input_receiver)


def read_a_variable(estimator):
    assert estimator.get_variable_value("global_step") == 2


def evaluate_in_a_schedule(estimator):
    spec = tf_estimator.EvalSpec(train_input_fn, steps=1)
    evaluated, _ = schedule._Executor._Evaluator(estimator, spec, None).evaluate_and_export()
    assert evaluated.metrics["global_step"] == 2


def go_on(estimator):
    estimator.train(train_input_fn, max_steps=3)


def use_keras(estimator):
    estimator.keras_model(train_input_fn)


def ask(estimator):
    assert estimator.latest_checkpoint().endswith("-2")


def map_weights(estimator):
    assert weight_map.read_variables(estimator.model_dir)["global_step"] == 2


def copy_for_a_dry_run(estimator):
    with tempfile.TemporaryDirectory() as root:
        own = Folders(root).own(estimator.model_dir)
        assert step_if_whole(candidates(own)[0]) == 2


@pytest.mark.parametrize(
    "use",
    [
        evaluate,
        evaluate_in_a_schedule,
        predict,
        export,
        read_a_variable,
        go_on,
        use_keras,
        ask,
        map_weights,
        copy_for_a_dry_run,
    ],
    ids=lambda f: f.__name__,
)
def test_an_older_checkpoint_is_never_taken_without_a_word(model_dir, caplog, use):
    (model_dir / "model.ckpt-4.index").unlink()
    use(make_estimator(model_dir, servable_model_fn))
    assert "model.ckpt-4, the newest that `checkpoint` names, is not there. Taking" in caplog.text
    assert "model.ckpt-2" in caplog.text


def test_training_does_not_begin_anew_without_a_word(model_dir, caplog):
    for index in model_dir.glob("*.index"):
        index.unlink()
    assert train(model_dir, 1).get_variable_value("global_step") == 1
    assert "is not there. Nor is an older one" in caplog.text


def test_damaged_event_files_are_passed_over(model_dir, caplog):
    estimator = make_estimator(model_dir, servable_model_fn)
    estimator.evaluate(train_input_fn, steps=1)
    [events] = (model_dir / "eval").iterdir()
    events.write_bytes(events.read_bytes()[:-20] + bytes(20))
    exporter = tf_estimator.BestExporter(serving_input_receiver_fn=serving_input_receiver)
    assert exporter.export(estimator, str(model_dir / "best"), None, {"loss": 1.0}, False)
    assert str(events) in caplog.text
