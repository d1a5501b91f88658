"""Files of earlier work are kept up to a limit."""

import os
import pathlib

import pytest

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.files import cache_files

KB = 1000


@pytest.fixture(autouse=True)
def _own_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(environment.CACHE_VARIABLE, str(3 * KB / 1e9))


def keep(name: str, used: float, size: int = KB) -> pathlib.Path:
    """A file of the cache, last used at a time."""
    path = cache_files.directory(name.partition("/")[0]) / name.partition("/")[2]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (used, used))
    return path


def left(tmp_path: pathlib.Path) -> set[str]:
    root = tmp_path / "tpu_estimator_compat"
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


def test_what_was_not_used_for_longest_goes(tmp_path):
    """All kinds together, and what JAX has put beside."""
    keep("jax/old.module", 1)
    keep("jax/jit_step-cache", 3)
    keep("preflight/older.json", 0)
    read = keep("preflight/read.json", 0)
    os.utime(read, (4, 0))
    cache_files.write(cache_files.directory("jax") / "new.module", bytes(KB // 2))
    assert left(tmp_path) == {"jax/new.module", "jax/jit_step-cache", "preflight/read.json"}


def test_up_to_the_limit_everything_stays(tmp_path):
    for name in ("jax/a", "jax/deeper/b", "preflight/c"):
        keep(name, 0)
    cache_files.trim()
    assert len(left(tmp_path)) == 3


def test_other_directories_are_left_alone(tmp_path):
    keep("jax/old", 0, 4 * KB)
    beside = tmp_path / "tpu_estimator_compat" / "parity"
    beside.mkdir()
    (beside / "file").write_bytes(bytes(9 * KB))
    cache_files.write(tmp_path / "elsewhere" / "file", bytes(9 * KB))
    assert left(tmp_path) == {"jax/old", "parity/file"}
    cache_files.trim()
    assert left(tmp_path) == {"parity/file"}
    assert (tmp_path / "elsewhere" / "file").exists()


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "no digest"])
def test_a_damaged_file_is_deleted_and_told_of(tmp_path, caplog, damage):
    path = tmp_path / "elsewhere" / "file"
    cache_files.write(path, b"one\ntwo")
    assert cache_files.read(path) == b"one\ntwo"
    whole = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "cut": whole[:-1],
            "changed": whole.replace(b"two", b"tow"),
            "no digest": b"one\ntwo",
        }[damage]
    )
    assert not caplog.records
    assert cache_files.read(path) is None
    assert not path.exists()
    assert [str(path) in record.getMessage() for record in caplog.records] == [True]
    assert cache_files.read(path) is None  # without a word: there is none
    assert len(caplog.records) == 1


def test_none_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv(environment.CACHE_VARIABLE, "0")
    cache_files.write(cache_files.directory("jax") / "new", b"1")
    assert not left(tmp_path)


def test_two_gigabytes_without_a_word(monkeypatch):
    monkeypatch.setenv(environment.CACHE_VARIABLE, "")
    assert environment.cache_limit() == 2_000_000_000
    monkeypatch.delenv(environment.CACHE_VARIABLE)
    assert environment.cache_limit() == 2_000_000_000


@pytest.mark.parametrize("wrong", ["2GB", "-1", "nan", "inf"])
def test_limits_that_are_none(monkeypatch, wrong):
    monkeypatch.setenv(environment.CACHE_VARIABLE, wrong)
    with pytest.raises(ValueError, match=f"CACHE_GB is '{wrong}'.*such as 2 or 0.5"):
        cache_files.trim()


def test_keys_change_with_every_source_of_the_package(tmp_path):
    def digest(**files):
        package = tmp_path / f"package_{len(list(tmp_path.iterdir()))}"
        (package / "room").mkdir(parents=True)
        for name, text in {"a": "1", "b": "2", **files}.items():
            (package / "room" / f"{name}.py").write_text(text)
        return cache_files.sources(package)

    assert digest() == digest()
    assert len({digest(), digest(a="2"), digest(b="1"), digest(c=""), digest(a="2", b="1")}) == 5
    assert cache_files.sources() != digest()
