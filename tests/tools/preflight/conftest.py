import subprocess

import pytest

from tpu_estimator_compat.tools.preflight import compiler, targets

from . import models
from .asking import estimator, input_fn


@pytest.fixture
def compile_for(cache):
    def compile_(program, topology="v5e:1x1", replicas=1, share=0.75, **options):
        return compiler.compile(program, targets.parse(topology, share), replicas, **options)

    return compile_


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of results, empty before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tpu_estimator_compat" / "preflight"


@pytest.fixture
def no_worker(monkeypatch):
    def popen(*unused_args, **unused_kwargs):
        raise AssertionError("started a worker")

    return lambda: monkeypatch.setattr(subprocess, "Popen", popen)


@pytest.fixture
def wide(tmp_path, cache):
    """`wide(batch_size)` is the report on `models.wide`; nothing is cached from before."""

    def of(batch_size, data=input_fn, **kwargs):
        made = estimator(models.wide, tmp_path / "model", train_batch_size=batch_size)
        [report] = made.preflight(data, "v5e:1x1", **kwargs).reports
        return report

    return of
