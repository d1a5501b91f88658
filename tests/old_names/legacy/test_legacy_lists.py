"""Lists of names of TensorFlow are those of the installed one."""

import pathlib

from support import live_names


def test_lists_are_those_of_the_installed_tensorflow(python, tmp_path):
    """In a process of its own: what other tests imported would add names."""
    code = f"""
import pathlib, runpy
lists = runpy.run_path({live_names.__file__!r})
lists["write"](pathlib.Path({str(tmp_path)!r}))
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    script = pathlib.Path(live_names.__file__).name
    for name in ("only_v1.txt", "only_v2.txt", "provided.txt"):
        ours = (live_names.FOLDER / name).read_text()
        assert ours == (tmp_path / name).read_text(), f"{name}: run tests/support/{script}"
        assert len(ours) > 1000, name
