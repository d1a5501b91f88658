"""Files in the working directory: no command imports them, but those that run code of the user."""

import os
import subprocess
import sys

import pytest

from tpu_estimator_compat.tools.commands import COMMANDS
from tpu_estimator_compat.tools.doctor import probing

ENDS = "import os\nos.write(1, b'IMPORTED {}')\nos._exit(9)\n"
BY_PYTHON = {"runpy", "pkgutil", "importlib", "contextlib", "collections", "functools", "types"}
"""Modules that Python itself imports for `-m`, before any code of a package."""

OF_PYTHON = sys.stdlib_module_names - BY_PYTHON - {"antigravity", "this"}
NAMES = [*sorted(OF_PYTHON), "rich", "numpy", "tensorflow"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A tree whose modules have the names of others, and end the process."""
    tree = tmp_path_factory.mktemp("tree")
    for name in NAMES:
        (tree / f"{name}.py").write_text(
            f"import os\nos.write(1, b'IMPORTED {name}')\nos._exit(9)\n"
        )
    (tree / "z.py").write_text("import tensorflow as tf\nx = tf.contrib.tpu.TPUConfig()\n")
    return tree


def said_by(tree, *words):
    done = subprocess.run(
        [sys.executable, "-m", "tpu_estimator_compat", *words],
        cwd=tree,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("command", ["scan", "migrate"])
def test_nothing_of_a_tree_that_is_read_is_imported(tree, command):
    said = said_by(tree, command, "z.py")
    assert "IMPORTED" not in said
    assert "TPUConfig" in said


def test_an_isolated_scan_ignores_pythonpath_in_its_children_too(tree, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep)  # empty entries: the working directory
    (tree / "sitecustomize.py").write_text(ENDS.format("sitecustomize"))
    command = [sys.executable, "-I", "-m", "tpu_estimator_compat", "scan", "z.py"]
    said = subprocess.run(command, cwd=tree, capture_output=True, text=True).stdout
    (tree / "sitecustomize.py").unlink()
    assert "IMPORTED" not in said
    assert "TPUConfig" in said


@pytest.mark.parametrize("command", [c.NAME for c in COMMANDS])
def test_help_imports_nothing_of_it(tree, command):
    said = said_by(tree, command, "--help")
    assert "IMPORTED" not in said
    assert "usage" in said


def test_a_probe_of_doctor_imports_nothing_of_it(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert probing.run(os.getcwd, {}, 120.0).answer == str(tree)


def test_a_package_that_is_started_itself_keeps_its_folder(tmp_path):
    """One that imports this package is looked for with `-m`, too."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text("import tpu_estimator_compat\n")
    (tmp_path / "own" / "__main__.py").write_text("import beside\n")
    (tmp_path / "beside.py").write_text("print('beside')\n")
    command = [sys.executable, "-m", "own", "scan"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).stdout == b"beside\n"


def test_modules_of_a_model_are_found_in_the_working_directory(tmp_path):
    (tmp_path / "models_of_test.py").write_text("def make():\n    raise SystemExit('made')\n")
    (tmp_path / "checkpoint").write_text("")
    assert "made" in said_by(tmp_path, "map-weights", ".", "models_of_test:make")
