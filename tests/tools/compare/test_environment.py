"""Parity environment: made once, remade if half made, skipped with a reason, never under CI."""

import os
import pathlib
import re
import sys

import pytest
from support import original

from tpu_estimator_compat.tools.compare import environment


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Directories that `make` was called for; nothing is installed, nothing is overridden."""
    calls: list[pathlib.Path] = []

    def make(python: str, home: pathlib.Path, *unused_arguments: object) -> None:
        assert os.access(python, os.X_OK)
        home.mkdir(parents=True, exist_ok=True)
        calls.append(home)

    monkeypatch.delenv(original.OVERRIDE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(environment, "make", make)
    monkeypatch.setattr(environment, "find_python", lambda release: (sys.executable, (3, 11)))
    return calls


def test_is_made_once(made, tmp_path):
    home = tmp_path / "tpu_estimator_compat" / "parity-tf2.15.1-py3.11"
    assert original.find_or_make() == str(home / "bin" / "python")
    original.find_or_make()
    assert made == [home]


def test_half_made_is_made_again(made, monkeypatch):
    """The marker comes last: an attempt that broke off leaves none."""

    def broken(python: str, home: pathlib.Path, *_: object) -> None:
        home.mkdir(parents=True)
        raise environment.Unavailable("no network")

    with monkeypatch.context() as patch:
        patch.setattr(environment, "make", broken)
        with pytest.raises(environment.Unavailable, match="no network"):
            original.find_or_make()
    original.find_or_make()
    assert len(made) == 1


def test_making_removes_what_was_there(tmp_path, monkeypatch):
    commands: list[list[str]] = []
    monkeypatch.setattr(environment, "run", commands.append)
    home = tmp_path / "parity-tf2.15.1-py3.11"
    home.mkdir()
    (home / "left over").touch()
    pinned = tmp_path / "pinned.txt"
    pinned.write_text("a==1 \\\n    --hash=sha256:0\n")

    environment.make(sys.executable, home, pinned)

    assert not home.exists()
    assert commands[0][1:3] == ["-m", "venv"]
    assert commands[1][-3:] == ["--require-hashes", "-r", str(pinned)]


@pytest.mark.parametrize("release", environment.RELEASES.values(), ids=environment.RELEASES)
def test_every_package_of_an_original_is_pinned_with_hashes(release):
    for version in release.pythons:
        name = f"tf{release.tensorflow}-py{version[0]}.{version[1]}"
        text = environment.pins(name).read_text()
        found = re.findall(
            r"^\S+==\S+ \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", text, re.M
        )
        assert "".join(found) == text
        assert {r for r in release.requirements if "==" in r} <= {f.split()[0] for f in found}


def test_override_is_used(made, monkeypatch):
    monkeypatch.setenv(original.OVERRIDE, sys.executable)
    assert original.find_or_make() == sys.executable
    assert not made


def test_bad_override_is_named(made, monkeypatch):
    monkeypatch.setenv(original.OVERRIDE, "/no/such/python")
    with pytest.raises(environment.Unavailable, match="/no/such/python"):
        original.find_or_make()


def test_failing_command_says_why():
    code = "import sys; sys.exit('No matching distribution')"
    with pytest.raises(environment.Unavailable, match="No matching distribution"):
        environment.run([sys.executable, "-c", code])


def test_executable_that_fails_has_no_version(tmp_path):
    """As a version manager's shim does for versions it does not have."""
    shim = tmp_path / "python3.10"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert environment.python_version(str(shim)) is None
    assert environment.python_version(sys.executable) == sys.version_info[:2]


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip), ("1", pytest.fail)])
def test_skips_but_fails_under_ci(made, monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv(original.OVERRIDE, "/no/such/python")
    with pytest.raises(outcome.Exception, match="no environment with the original"):
        original.require()


def test_other_packages_have_an_environment_of_their_own(made):
    release = environment.RELEASES["2.15"]
    found = [environment.find_or_make(release, p) for p in ((), ("a", "b"), ("b", "a"), ("c",))]
    assert len(set(found)) == 3
    assert found[1] == found[2]
