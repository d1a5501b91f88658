import os
import pathlib

import pytest

from tpu_estimator_compat.engine.checkpoint import saved_files


def test_files_move_only_when_all_are_complete(tmp_path):
    def fail():
        with saved_files.appearing_at_once(f"{tmp_path}/a") as prefix:
            pathlib.Path(f"{prefix}.index").write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert os.listdir(tmp_path) == []
    with saved_files.appearing_at_once(f"{tmp_path}/a") as prefix:
        pathlib.Path(f"{prefix}.index").write_text("whole")
        assert not (tmp_path / "a.index").exists()
    assert (tmp_path / "a.index").read_text() == "whole"
