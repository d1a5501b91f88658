import os
import re
import time

import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.export import directories

from .scripts import run_script


def test_exports_in_one_second_get_directories_of_their_own(trained, cases, tmp_path):
    paths = {trained("plain").export_saved_model(tmp_path, cases.raw_receiver) for _ in range(2)}
    assert len(paths) == 2


def test_two_processes_in_one_second(trained, cases, tmp_path):
    others = {f"temp-{int(time.time()) + i}" for i in range(2)}
    for name in others:
        (tmp_path / name).mkdir()
    path = trained("plain").export_saved_model(str(tmp_path), cases.raw_receiver).decode()
    assert f"temp-{os.path.basename(path)}" not in others
    assert set(os.listdir(tmp_path)) == {*others, os.path.basename(path)}


def test_no_free_timestamp(trained, cases, tmp_path, monkeypatch):
    (tmp_path / "temp-1").mkdir()
    monkeypatch.setattr(
        directories, "get_timestamped_export_dir", lambda base: f"{base}/1".encode()
    )
    monkeypatch.setattr(directories.time, "sleep", lambda seconds: None)
    with pytest.raises(
        RuntimeError, match="Failed to obtain a unique export directory name after 10"
    ):
        trained("plain").export_saved_model(str(tmp_path), cases.raw_receiver)
    assert os.listdir(tmp_path) == ["temp-1"]


def test_a_directory_that_cannot_be_written(trained, cases, tmp_path):
    (tmp_path / "file").write_text("")
    base = str(tmp_path / "file" / "exports")
    with pytest.raises(
        tf.errors.OpError, match=re.escape(f"Cannot export to export_dir_base={base!r}")
    ):
        trained("plain").export_saved_model(base, cases.raw_receiver)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_export_leaves_nothing(error, trained, cases, tmp_path, monkeypatch):
    def stop(*unused_args, **unused_kwargs):
        [temporary] = os.listdir(tmp_path)
        assert temporary.startswith("temp-")
        assert "variables" in os.listdir(tmp_path / temporary)
        raise error("stopped")

    monkeypatch.setattr(tf.compat.v1.saved_model.Builder, "save", stop)
    with pytest.raises(error, match="stopped"):
        trained("plain").export_saved_model(str(tmp_path), cases.raw_receiver)
    assert os.listdir(tmp_path) == []


def test_an_extra_asset_that_does_not_exist(trained, cases, tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        trained("plain").export_saved_model(
            str(tmp_path), cases.raw_receiver, assets_extra={"a": "/nowhere"}
        )
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_a_killed_export_leaves_nothing_that_a_server_sees(trained, tmp_path):
    out = str(tmp_path / "out")
    action = "tf.saved_model.Builder.save = lambda *unused: os._exit(9)\n"
    done = run_script(
        "plain", trained("plain").model_dir, action=f"{action}case.export(est, {out!r})"
    )
    assert done.returncode == 9, done.stderr[-2000:]
    [left] = os.listdir(out)
    assert left.startswith("temp-")
