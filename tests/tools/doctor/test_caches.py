import pytest

from tpu_estimator_compat.tools.doctor import caches
from tpu_estimator_compat.tools.doctor.report import Status


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.delenv("TPU_ESTIMATOR_COMPAT_CACHE_GB", raising=False)
    from tpu_estimator_compat.engine.jax import installation as jax_installation

    # The tests of other rooms may have their own.
    monkeypatch.setattr(
        jax_installation, "cache_directory", lambda: caches.cache_files.directory("jax")
    )
    return tmp_path / "cache" / "tpu_estimator_compat"


def test_caches_that_are_not_there_yet_are_not_made(cache):
    found = caches.check()
    assert [f.status for f in found] == [Status.OK] * 2
    assert str(cache / "jax") in found[0].text
    assert "0 files" in found[0].text
    assert "limit of both is 2 GB" in found[0].text
    assert not cache.parent.exists()


def test_sizes(cache, monkeypatch):
    monkeypatch.setenv("TPU_ESTIMATOR_COMPAT_CACHE_GB", "0.5")
    (cache / "jax").mkdir(parents=True)
    (cache / "jax" / "compiled").write_bytes(b"0" * 20_000_000)
    text = caches.check()[0].text
    assert "1 files, 0.02 GB; the limit of both is 0.5 GB" in text
    assert [path.name for path in (cache / "jax").iterdir()] == ["compiled"]


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [("jax", "step.module", ""), ("preflight", "program.json", '{"error": ')],
)
def test_damaged_entries(cache, kind, name, content):
    (cache / kind).mkdir(parents=True)
    (cache / kind / name).write_text(content)
    [finding] = [f for f in caches.check() if f.status is not Status.OK]
    assert finding.status is Status.WARNING
    assert f"1 damaged, such as {name}" in finding.text
    assert finding.advice == f"They are compiled anew. rm -r '{cache / kind}'"


def test_one_that_cannot_be_written_to(cache):
    cache.parent.mkdir()
    cache.write_text("a file")
    found = caches.check()
    assert [f.status for f in found] == [Status.WARNING] * 2
    assert "cannot be used" in found[0].text


def test_a_limit_that_is_none(cache, monkeypatch):
    monkeypatch.setenv("TPU_ESTIMATOR_COMPAT_CACHE_GB", "a lot")
    [finding] = caches.check()
    assert finding.status is Status.FAILURE
    assert "'a lot'" in finding.text


def test_the_place_that_a_user_gives_jax(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "own"))
    assert f"JAX_COMPILATION_CACHE_DIR: {tmp_path / 'own'}, writable" in caches.check()[2].text
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "gs://bucket/own")
    assert caches.check()[2].status is Status.NOT_MADE
