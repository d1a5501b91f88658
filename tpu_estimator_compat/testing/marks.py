"""The mark `replicas` of a test: its numbers, checked, which parametrize the fixture `replicas`."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import pytest

DESCRIPTION = (
    "replicas(number, ...): run the test while TPUEstimator has that many replicas on the CPU; "
    "once for each number"
)

_FIXTURE = "replicas"


def numbers(mark: pytest.Mark) -> list[int]:
    """The numbers of replicas that a mark names; raises ValueError, with what is wrong."""
    if unknown := set(mark.kwargs) - {"replicas"}:
        raise ValueError(f"it has no argument {', '.join(sorted(unknown))}")
    given = [*mark.args, *([mark.kwargs["replicas"]] if mark.kwargs else [])]
    if len(given) == 1 and isinstance(given[0], Iterable) and not isinstance(given[0], str | bytes):
        given = list(given[0])
    if not given:
        raise ValueError("it names no number: write @pytest.mark.replicas(4)")
    found = [whole_number(number) for number in given]
    if len(set(found)) < len(found):
        raise ValueError(f"it names a number twice: {found}")
    return found


def whole_number(replicas: Any) -> int:
    """`replicas` as an int; raises ValueError unless it is a whole number from 1 on."""
    try:
        number = operator.index(replicas)
    except TypeError:
        number = 0
    if number < 1 or isinstance(replicas, bool):
        raise ValueError(f"the number of replicas is {replicas!r}: give a whole number from 1 on")
    return number


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Gives the fixture a mark's numbers, one test each; `fault` reports a wrong mark.

    The fixture lasts a session: fixtures of a module that use it are made anew for each number.
    """
    mark = metafunc.definition.get_closest_marker("replicas")
    if mark is None or _wrong(mark):
        return
    found = numbers(mark)
    if _FIXTURE not in metafunc.fixturenames:
        if len(found) == 1:
            return
        metafunc.fixturenames.append(_FIXTURE)
    ids = [f"replicas={number}" for number in found]
    hidden = getattr(pytest, "HIDDEN_PARAM", ids[0])  # pytest has it from 8.4 on
    metafunc.parametrize(_FIXTURE, found, indirect=True, ids=ids if len(found) > 1 else [hidden])


def number_of(item: pytest.Item) -> int | None:
    mark = item.get_closest_marker("replicas")
    return None if mark is None else _chosen(item) or numbers(mark)[0]


def _chosen(item: pytest.Item) -> int | None:
    """The value of the test's parameter, if it has one."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get(_FIXTURE) if callspec else None


def fault(item: pytest.Item) -> str:
    """The fault of a test's mark, in words; empty if there is none."""
    mark = item.get_closest_marker("replicas")
    if mark is None:
        return ""
    if wrong := _wrong(mark):
        return f"{item.nodeid}: the mark `replicas` is wrong: {wrong}"
    if sum(own.name == "replicas" for own in item.own_markers) > 1:  # only the closest is read
        return f"{item.nodeid}: two marks `replicas`, perhaps one of them in pytest.param: use one"
    if len(numbers(mark)) > 1 and _chosen(item) is None:
        return (
            f"{item.nodeid}: the mark `replicas` names {len(numbers(mark))} numbers. A method "
            "of unittest.TestCase cannot have parameters, and a mark in pytest.param or added by a "
            "hook is too late to make them: name one number, or mark a function or a plain class "
            "for pytest."
        )
    return ""


def _wrong(mark: pytest.Mark) -> str:
    try:
        numbers(mark)
    except ValueError as error:
        return str(error)
    return ""
