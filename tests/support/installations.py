"""Environments made by the lines of the page on installing, each kept in the cache directory.

A line is executed as a reader would, in a folder that looks like a clone. It is executed again when
the line changes, or what setup.cfg requires; remove the folder to have it executed on today's
releases. What tests need besides is added afterwards, and may change nothing of what the line
installed.
"""

import configparser
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable

import pytest

from tpu_estimator_compat.engine.files import cache_files
from tpu_estimator_compat.tools.compare.environment import Unavailable, lock

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "migration_guide" / "install.md"
CLONE = ("LICENSE", "README.md", "pyproject.toml", "setup.cfg", "tpu_estimator_compat")
NAMES = ("tensorflow-2.21", "tensorflow-2.20", "tensorflow-2.19", "tensorflow-tpu")
BASE = getattr(sys, "_base_executable", sys.executable)
"""This Python, outside its virtual environment."""

WITHIN = {"preflight": ("jax", "preflight"), "test": ("jax", "preflight", "test")}
"""The extras that an extra has."""

WITHOUT_A_CHIP = {
    # Elsewhere than on a TPU VM, libtpu would ask for the machine's description for minutes.
    "TPU_SKIP_MDS_QUERY": "1",
    # Else one process at a time has libtpu, and which one is chance.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


def lines() -> dict[str, str]:
    pattern = r"^<!-- install: (.*) -->\n```sh\n(.*)\n```$"
    return dict(re.findall(pattern, PAGE.read_text(), re.MULTILINE))


@dataclasses.dataclass(frozen=True)
class Installation:
    name: str
    home: pathlib.Path

    @property
    def packages(self) -> pathlib.Path:
        [found] = self.home.glob("lib/python3.*/site-packages")
        return found

    def run(
        self, *arguments: str, path: tuple[pathlib.Path, ...] = (ROOT,), **options
    ) -> subprocess.CompletedProcess:
        env = {**os.environ, **WITHOUT_A_CHIP, "PYTHONPATH": os.pathsep.join(map(str, path))}
        # Set where this process has imported a libtpu, which is the compiler of `preflight`.
        env.pop("TPU_LIBRARY_PATH", None)
        # A pytest in there is no worker of this one: workers share what runs have written.
        for name in [name for name in env if name.startswith("PYTEST_")]:
            del env[name]
        env |= options.pop("env", {})
        command = [str(self.home / "bin" / "python"), *arguments]
        given = {"capture_output": True, "text": True, "timeout": 1500, **options}
        return subprocess.run(command, env=env, **given)


def installation(name: str) -> Installation:
    """The environment of a line; makes it if need be. Skips where it cannot, fails under CI."""
    try:
        return find_or_make(name, lines()[name])
    except Unavailable as error:
        reason = f"the line for {name} cannot be executed: {error}"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def newest_jax() -> Installation:
    """The environment with the newest JAX of the extra `jax`; skips where its Python is missing."""
    python = python_of("3.12", "JAX of later than 0.10.2 needs it")
    line = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[preflight]'"
    return find_or_make("jax-newest", line, python)


def newest_python() -> Installation:
    """What README's test command installs on the newest Python that README names."""
    readme = (ROOT / "README.md").read_text()
    [version] = re.findall(r"Python 3\.\d+ to (3\.\d+) as `python3`", readme)
    [line] = re.findall(r"<!-- command: tests -->\n```sh\n(.*) && .*\n```", readme)
    python = python_of(version, "README names it: run the tests there before you trust it")
    return find_or_make(f"python-{version}", line, python)


def python_of(version: str, why: str) -> str:
    """A Python of a version such as "3.13", on PATH or pyenv's; skips where there is none."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    installed = sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python")))
    for python in filter(None, [shutil.which(f"python{version}"), *installed]):
        asked = [python, "-c", "import sys; print('{}.{}'.format(*sys.version_info))"]
        done = subprocess.run(asked, capture_output=True, text=True)
        if done.stdout.strip() == version:
            return python
    pytest.skip(f"no Python {version} on PATH or of pyenv. {why}")


def find_or_make(name: str, line: str, python: str = BASE) -> Installation:
    """The environment that a line makes, of that name."""
    asked = [*requirements("options", "install_requires"), *tools()]
    [asked_extra] = re.findall(r"'\.\[(\w+)\]'", line) or [""]
    for extra in WITHIN.get(asked_extra, ()):
        asked += requirements("options.extras_require", extra)
    wanted = "\n".join([line, *asked])
    home = kept(f"install-{name}", wanted, lambda home: make(line, home, python))
    return Installation(name, home / ".venv")


def kept(name: str, wanted: str, fill: Callable[[pathlib.Path], object]) -> pathlib.Path:
    """A folder of the cache directory; it is filled once, and anew where `wanted` is another."""
    version = "".join(map(str, sys.version_info[:2]))
    home = cache_files.root() / f"{name}-py{version}"
    with lock(home.with_name(home.name + ".lock")):
        marker = home / "finished"
        if not marker.exists() or marker.read_text() != wanted:
            shutil.rmtree(home, ignore_errors=True)
            fill(home)
            marker.write_text(wanted)
    return home


def requirements(section: str, key: str) -> list[str]:
    """A list of setup.cfg."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg")
    listed = parser[section][key].splitlines()
    return [line for line in listed if line and not line.startswith("#")]


def tools() -> list[str]:
    """What the tests and the digits example need; nothing that asks for TensorFlow."""
    return ["pytest>=8", *requirements("options.extras_require", "examples")]


def make(line: str, home: pathlib.Path, python: str) -> None:
    """Executes a line in a folder with the files of a clone, then installs the tools."""
    home.mkdir(parents=True)
    for name in CLONE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, home / name)
    with tempfile.TemporaryDirectory() as folder:
        # The lines say python3: that is `python`. No link, which the environment would link to.
        python3 = pathlib.Path(folder, "python3")
        python3.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} "$@"\n')
        python3.chmod(0o755)
        env = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        env.pop("PYTHONPATH", None)
        _run(["bash", "-c", line], cwd=home, env=env)
    pip = [".venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
    installed = _run([*pip, "freeze", "--exclude-editable"], cwd=home)
    (home / "installed.txt").write_text(installed)
    _run([*pip, "install", "--quiet", "--constraint", "installed.txt", *tools()], cwd=home)


def _run(command: list[str], **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        tail = " ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise Unavailable(f"`{command[-1]}` failed: {tail}")
    return done.stdout


@pytest.fixture(scope="session")
def gpu_compiler() -> pathlib.Path:
    """A folder with the packages of the extra `preflight-gpu`, but for JAX: it needs no GPU.

    No environment of the tests has them: with them, JAX looks for a GPU at each start.
    """
    wanted = requirements("options.extras_require", "preflight-gpu")
    given = [package for package in wanted if not package.startswith(("jax==", "jaxlib=="))]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *given, "--target"]
    return kept(
        "install-preflight-gpu",
        "\n".join(given),
        lambda home: subprocess.run([*pip, str(home)], check=True),
    )


@pytest.fixture
def with_gpu_compiler(gpu_compiler, monkeypatch):
    """Has this process and those that it starts find the compiler."""
    monkeypatch.syspath_prepend(gpu_compiler)
    path = os.pathsep.join(filter(None, [str(gpu_compiler), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
