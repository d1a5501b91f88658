"""What the package deletes is decided in one place, by names that it gives."""

import pathlib
import re

import pytest

import tpu_estimator_compat
from tpu_estimator_compat.engine.files import removal

PACKAGE = pathlib.Path(tpu_estimator_compat.__file__).parent
DELETES = re.compile(
    r"(\bos\.(remove|unlink|rmdir|removedirs)|\brmtree|gfile\.(remove|rmtree)|\.unlink|\.rmdir"
    r"|delete_file|delete_recursively|import .*\b(unlink|rmdir|removedirs))\b"
)
DECIDES = "engine/files/removal.py"


def test_no_other_module_deletes():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if DELETES.search(path.read_text(encoding="utf-8"))
    }
    assert found == {DECIDES}


NAMES = {
    "position": ["model.ckpt-7.input-00000-of-00001.index"],
    "save": [".model.ckpt-7.unfinished-0123abcd"],
    "list": [f"checkpoint.tmp{'0f' * 16}"],
    "unfinished": ["served.unfinished-0123abcd", "a.gz.part-0123abcd"],
    "replaced": ["served.replaced-0123abcd"],
    "export": ["1600000000"],
    "temporary export": ["temp-1600000000"],
    "environment": ["parity-tf2.15.1-py3.11", "parity-tf2.15.1-py3.11-0123abcd"],
    "probe": ["doctor_0123456789ab"],
}
OTHERS = [
    "train-2019.input-00003-of-00010.index",
    "queries-7.input-00000-of-00001.data-00000-of-00001",
    "model.ckpt-7.input-00000-of-00010.index",
    "checkpoint.tmp",
    "served.unfinished",
    ".model.ckpt-7.unfinished",
    "temp",
    "2019",
    "notes",
]


@pytest.mark.parametrize(("kind", "names"), NAMES.items())
def test_only_names_of_the_kind_go(tmp_path, kind, names):
    for name in (*names, *OTHERS):
        (tmp_path / name).mkdir()
    for name in names:
        removal.remove(tmp_path / name, kind)
    for name in OTHERS:
        with pytest.raises(AssertionError, match="is not deleted"):
            removal.remove(tmp_path / name, kind)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(OTHERS)


def test_a_link_of_such_a_name_stays_with_its_target(tmp_path):
    (tmp_path / "notes").mkdir()
    link = tmp_path / "doctor_0123456789ab"
    link.symlink_to(tmp_path / "notes")
    removal.remove(link, "probe")
    assert link.is_symlink()
    assert (tmp_path / "notes").is_dir()


@pytest.mark.parametrize(
    ("path", "is_local"),
    [("/a/run://b", True), ("run:1/a", True), ("other://a", True), ("a", True), ("gs://a", False)],
)
def test_the_registry_of_file_systems_says_what_is_remote(path, is_local):
    assert removal.is_local(path) == is_local
