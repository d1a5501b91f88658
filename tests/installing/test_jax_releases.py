"""The newest JAX of the extra `jax`, which needs another Python; other tests have the oldest."""

import re

import pytest
from support.installations import ROOT, newest_jax

from tpu_estimator_compat.engine.jax import installation as jax_installation

pytestmark = [pytest.mark.full, pytest.mark.minutes]

VERSION = "from importlib import metadata; print(metadata.version('jax'))"


def test_the_runtime_on_the_newest():
    environment = newest_jax()
    found = environment.run("-c", VERSION).stdout.strip()
    assert found == jax_installation.NEWEST, f"JAX {found} is there: try it, and move the range."
    tests = ["tests/engine/jax/test_installation.py", "tests/engine/jax", "tests/engine/topology"]
    arguments = ["-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    done = environment.run("-m", "pytest", *arguments, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    assert re.search(r"^\d{3,} passed", done.stdout.splitlines()[-1]), done.stdout[-1000:]
