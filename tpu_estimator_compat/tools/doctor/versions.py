"""The installed packages, and whether they satisfy each other's requirements."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.jax import installation as jax_installation
from tpu_estimator_compat.tools.doctor.report import CheckResult, Status

_CHECK = "versions"
_OWN = "tpu_estimator_compat"
_CUDA = ("jax-cuda12-plugin", "jax-cuda13-plugin")
_OTHERS = ("keras", "tf-keras", "numpy", "protobuf", "ml-dtypes", "jax", "jaxlib", "libtpu")
_PJRT = ("jax-cuda12-pjrt", "jax-cuda13-pjrt")
_NAMES = (_OWN, *environment.DISTRIBUTIONS, *_OTHERS, *_CUDA, *_PJRT)
_EXTRAS = {_OWN: ("", "jax"), "jax": ("", "tpu", "cuda12", "cuda13")}


@dataclasses.dataclass(frozen=True)
class Installed:
    """An installed distribution: its version, required packages and required Python."""

    version: str
    requires: tuple[str, ...] = ()
    python: str = ""


def check(chips: int | None) -> list[CheckResult]:
    """Checks the installed packages without importing them; `chips` is None where unknown."""
    return judge(platform.python_version(), _installed(), chips)


def _installed() -> dict[str, Installed]:
    found = {}
    for name in _NAMES:
        try:
            there = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        python = there.metadata["Requires-Python"] or ""
        found[name] = Installed(there.version, tuple(there.requires or ()), python)
    return found


def judge(python: str, found: Mapping[str, Installed], chips: int | None) -> list[CheckResult]:
    """Checks the distributions `found`, by name, for conflicts; the advice is a pip command."""
    named = ", ".join(f"{n} {i.version}" for n, i in found.items() if n != _OWN)
    conflicts = list(_conflicts(python, found, chips))
    status = Status.FIGURE if conflicts else Status.OK
    results = [CheckResult(_CHECK, status, f"Python {python}, {named}"), *conflicts]
    if _OWN not in found:
        text = f"pip has no record of {_OWN}: its requirements were not checked."
        results.append(CheckResult(_CHECK, Status.NOT_MADE, text, "pip install -e . in its clone"))
    return results


def _conflicts(
    python: str, found: Mapping[str, Installed], chips: int | None
) -> Iterator[CheckResult]:
    try:
        environment.check()  # as importing the package does
    except ImportError as error:
        what, _, advice = str(error).partition("\n")
        yield CheckResult(_CHECK, Status.FAILURE, what, advice)
    try:
        from packaging.requirements import Requirement
        from packaging.specifiers import SpecifierSet
    except ImportError:
        text = "The package `packaging` is not installed: versions were not compared."
        yield CheckResult(_CHECK, Status.NOT_MADE, text, "pip install packaging")
        return
    told = set()
    for owner, installed in found.items():
        if not SpecifierSet(installed.python).contains(python, prereleases=True):
            text = f"{owner} {installed.version} requires Python {installed.python}, not {python}."
            advice = f"Make an environment with a Python {installed.python}."
            yield CheckResult(_CHECK, Status.FAILURE, text, advice)
        for asked in map(Requirement, installed.requires):
            name = asked.name.lower().replace("_", "-")
            if name not in _NAMES or not _is_meant(asked, owner, name, found, chips):
                continue
            there = _provider(name, found)
            if there and asked.specifier.contains(there.version, prereleases=True):
                continue
            has = f"found {there.version}" if there else "there is none"
            advice = f"pip install '{name}{asked.specifier}'"
            if name.startswith("jax") or name == "libtpu":
                advice = line_for_jax(found)
            if (name, advice) not in told:
                told.add((name, advice))
                text = f"{owner} {installed.version} requires {name}{asked.specifier}; {has}."
                yield CheckResult(_CHECK, Status.FAILURE, text, advice)


def _is_meant(
    asked: Any, owner: str, name: str, found: Mapping[str, Installed], chips: int | None
) -> bool:
    """Whether a requirement applies; one of an extra does if its package is installed and used."""
    if asked.marker is None or asked.marker.evaluate({"extra": ""}):
        return True
    if name not in found or (name == "libtpu" and (chips == 0 or "tensorflow-tpu" in found)):
        return False
    return any(asked.marker.evaluate({"extra": extra}) for extra in _EXTRAS.get(owner, ()))


def _provider(name: str, found: Mapping[str, Installed]) -> Installed | None:
    """The installed distribution of a name; tensorflow-tpu counts as tensorflow."""
    names = environment.DISTRIBUTIONS if name == "tensorflow" else (name,)
    return next((found[name] for name in names if name in found), None)


def line_for_jax(found: Mapping[str, Installed]) -> str:
    """The pip command for a tested JAX, for the devices of the packages `found`."""
    extras = [name.split("-")[1] for name in _CUDA if name in found]
    if "libtpu" in found and "tensorflow-tpu" not in found:
        extras.append("tpu")
    kind = f"[{','.join(extras)}]" if extras else ""
    return f"pip install 'jax{kind}{jax_installation.RANGE}'"
