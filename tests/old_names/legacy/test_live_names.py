"""Lists of names of TensorFlow are those of the installed one."""

from tpu_estimator_compat.old_names.legacy import live_names


def test_lists_are_those_of_the_installed_tensorflow(python, tmp_path):
    """In a process of its own: what other tests imported would add names."""
    code = f"""
import pathlib
from tpu_estimator_compat.old_names.legacy import live_names
live_names.FOLDER = pathlib.Path({str(tmp_path)!r})
live_names.write()
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    for name in ("only_v1.txt", "only_v2.txt", "provided.txt"):
        ours = (live_names.FOLDER / name).read_text()
        assert ours == (tmp_path / name).read_text(), f"{name}: run python -m {live_names.__name__}"
        assert len(ours) > 1000, name
