"""XLA's compiler for GPUs in a folder of its own, in the cache directory: it needs no GPU."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tpu_estimator_compat.engine.files import cache_files
from tpu_estimator_compat.tools.compare.environment import lock

from .installations import requirements


@pytest.fixture(scope="session")
def gpu_compiler() -> pathlib.Path:
    """A folder with the packages of the extra `preflight-gpu`, but for JAX.

    No environment of the tests has them: with them, JAX looks for a GPU at each start.
    """
    wanted = requirements("options.extras_require", "preflight-gpu")
    given = [package for package in wanted if not package.startswith(("jax==", "jaxlib=="))]
    version = "".join(map(str, sys.version_info[:2]))
    home = cache_files.root() / f"install-preflight-gpu-py{version}"
    with lock(home.with_name(home.name + ".lock")):
        marker = home / "finished"
        if not marker.exists() or marker.read_text() != "\n".join(given):
            shutil.rmtree(home, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            subprocess.run([*pip, "--target", str(home), *given], check=True)
            marker.write_text("\n".join(given))
    return home


@pytest.fixture
def with_gpu_compiler(gpu_compiler, monkeypatch):
    """Has this process and those that it starts find the compiler."""
    monkeypatch.syspath_prepend(gpu_compiler)
    path = os.pathsep.join(filter(None, [str(gpu_compiler), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
