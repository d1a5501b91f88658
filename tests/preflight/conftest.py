"""Compiles programs for TPUs, each test with a cache of its own."""

import subprocess

import pytest

from tpu_estimator_compat.preflight import compiler, topologies


@pytest.fixture
def compile_for(tmp_path):
    """`compile_for(program, topology, replicas)`, with an empty cache."""

    def compile_(program, topology="v5e:1x1", replicas=1, **options):
        return compiler.compile(
            program,
            topologies.parse(topology),
            replicas,
            **{"cache_dir": tmp_path / "cache", **options},
        )

    return compile_


@pytest.fixture
def no_worker(monkeypatch):
    """`no_worker()` makes a start of the worker fail from then on."""

    def popen(*unused_args, **unused_kwargs):
        raise AssertionError("started a worker")

    return lambda: monkeypatch.setattr(subprocess, "Popen", popen)
