"""Published packages of TPUEstimator's time, as their authors uploaded them.

`clients` is a pytest fixture: the folder they are in, to be put on `PYTHONPATH`. Nothing in it is
ours, and not a character is changed.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from support import TESTS, python_path
from support.installations import kept

REQUIREMENTS = (
    "OpenNMT-tf==1.25.3",
    "adanet==0.9.0",
    "albert-tensorflow==1.1",
    "bert-serving-client==1.10.0",
    "bert-serving-server==1.10.0",
    "bert-tensorflow==1.0.4",
    "deepctr==0.9.3",
    "mesh-tensorflow==0.1.21",
    "neural-structured-learning==1.4.0",
    "tensorflow-addons==0.23.0",
    "tensorflow-gan==2.1.0",
    "tensorflow-privacy==0.6.2",
    "tensorflow-ranking==0.2.3",
    "xlnet-tensorflow==1.1.2",
)
NEEDED = (
    "attrs==25.4.0",  # by neural-structured-learning
    "cloudpickle==3.1.1",  # by tensorflow-probability
    "decorator==5.2.1",  # by tensorflow-probability
    "dm-tree==0.1.9",  # by tensorflow-privacy and tensorflow-probability
    "gin-config==0.5.0",  # by mesh-tensorflow
    "mock==5.2.0",  # by mesh-tensorflow's tests
    "pyzmq==27.1.0",  # by bert-serving-server
    "sentencepiece==0.2.1",  # by albert-tensorflow and xlnet-tensorflow
    "setuptools==80.10.2",  # has pkg_resources: by tensorflow-hub and mesh-tensorflow
    "tensorflow-hub==0.16.1",  # by tensorflow-gan
    "tensorflow-probability==0.25.0",  # by tensorflow-gan
    "tf-slim==1.1.0",  # by mesh-tensorflow
    "typeguard==2.13.3",  # by tensorflow-addons
)


@pytest.fixture(scope="session")
def clients() -> pathlib.Path:
    """The folder; installs into it once, in the user's cache directory."""
    return kept("clients", "\n".join((*REQUIREMENTS, *NEEDED)), _install)


def environment(clients: pathlib.Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": python_path.joined(TESTS.parent, clients)}


def _install(home: pathlib.Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command = [*pip, "--no-deps", "--target", str(home), *REQUIREMENTS, *NEEDED]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return
    reason = f"client packages cannot be installed: {done.stderr.strip()[-300:]}"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
