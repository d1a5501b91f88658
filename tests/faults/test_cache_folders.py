"""The cache holds programs: it is this user's alone, in a place of this user's, or not used."""

import os
import pathlib
import stat
import tempfile

import pytest

from tpu_estimator_compat.engine.files import cache_files


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    cache_files._warn_of_others.cache_clear()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_files.root()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def kept():
    """What is read of a file that is kept."""
    path = cache_files.directory("jax") / "step.module"
    cache_files.write(path, b"program")
    return cache_files.read(path)


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_without_a_home_the_working_directory_stays_empty(tmp_path, monkeypatch, home):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    if home is None:  # nor in the system's list of users
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    else:
        monkeypatch.setenv("HOME", home)
    root = cache_files.root()
    assert root == tmp_path / "temporary" / f"tpu_estimator_compat-{os.getuid()}"
    assert kept() == b"program"
    assert mode(root) == 0o700
    assert os.listdir(tmp_path) == ["temporary"]


def test_with_a_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_files.root() == tmp_path / ".cache" / "tpu_estimator_compat"


def test_the_folder_is_made_for_this_user_alone(cache):
    assert kept() == b"program"
    assert mode(cache) == 0o700


def test_the_folder_of_an_earlier_release_becomes_so(cache, caplog):
    cache.mkdir(mode=0o755)
    assert kept() == b"program"
    assert mode(cache) == 0o700
    assert caplog.text == ""


def test_a_folder_that_everybody_may_write_to_is_not_used(cache, caplog):
    kept()
    cache.chmod(0o777)
    assert kept() is None
    assert f"Not using the cache {cache}, which another user can write to" in caplog.text
    caplog.clear()
    assert kept() is None
    assert caplog.text == ""  # once is enough


def test_a_folder_of_another_user_is_not_used(cache, caplog, monkeypatch):
    kept()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert kept() is None
    assert "another user" in caplog.text


def test_jax_is_not_given_such_a_folder(cache, monkeypatch):
    jax = pytest.importorskip("jax")
    from tpu_estimator_compat.engine.jax import installation

    before = jax.config.jax_compilation_cache_dir
    cache.mkdir()
    cache.chmod(0o777)
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        installation.devices(1, tpu_chips=0)
        assert jax.config.jax_compilation_cache_dir is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_files_of_other_places_are_not_concerned(tmp_path, cache):
    cache.mkdir()
    cache.chmod(0o777)
    path = pathlib.Path(tmp_path, "own", "file")
    cache_files.write(path, b"content")
    assert cache_files.read(path) == b"content"
