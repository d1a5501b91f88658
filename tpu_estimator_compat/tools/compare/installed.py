"""Checks the installed packages of an environment against its pins, without running any."""

from __future__ import annotations

import csv
import importlib.metadata
import pathlib
import re

_ORIGINALS = pathlib.Path(__file__).with_name("originals")


def pins(name: str) -> pathlib.Path:
    """The file of all versions and hashes of an environment, written by `uv pip compile`."""
    return _ORIGINALS / f"{name}.txt"


def damage(home: pathlib.Path, pinned: pathlib.Path) -> str:
    """The first package or file that is missing or wrong, in words; empty if all are right."""
    sites = [str(path) for path in home.glob("lib/python*/site-packages")]
    found = {
        _key(d.metadata["Name"] or ""): d for d in importlib.metadata.distributions(path=sites)
    }
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", pinned.read_text(), re.MULTILINE):
        distribution = found.get(_key(name))
        if distribution is None or distribution.version != version:
            return f"{name}=={version} is not there"
    for distribution in found.values():
        # Not `distribution.files`: from Python 3.12 on it leaves out files that are missing.
        record = (distribution.read_text("RECORD") or "").splitlines()
        for file, _, size in csv.reader(record):
            path = pathlib.Path(str(distribution.locate_file(file)))
            if not size or path.suffix == ".pyc":  # Python may write these anew
                continue
            if not path.is_file() or path.stat().st_size != int(size):
                return f"{path} is not as it was installed"
    return ""


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
