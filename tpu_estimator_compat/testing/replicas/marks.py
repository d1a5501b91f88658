"""The mark `replicas` of a test: its numbers, checked, and the test's parameter for several."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tpu_estimator_compat.testing.replicas.processes import whole_number

PARAMETER = "_replicas"

DESCRIPTION = (
    "replicas(number, ...): run the test in a process of its own, in which TPUEstimator has that "
    "many replicas on the CPU; once for each number"
)


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


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Makes one test per number, where a mark has several; `fault` reports a wrong mark."""
    mark = metafunc.definition.get_closest_marker("replicas")
    if mark is None or _wrong(mark) or len(found := numbers(mark)) == 1:
        return
    metafunc.fixturenames.append(PARAMETER)
    ids = [f"replicas={number}" for number in found]
    metafunc.parametrize(PARAMETER, found, ids=ids)


def number_of(item: pytest.Item) -> int | None:
    mark = item.get_closest_marker("replicas")
    return None if mark is None else _chosen(item) or numbers(mark)[0]


def _chosen(item: pytest.Item) -> int | None:
    """The value of the test's parameter, if it has one."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get(PARAMETER) if callspec else None


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
