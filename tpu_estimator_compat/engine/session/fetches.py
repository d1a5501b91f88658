"""Flattens the fetches of a session's caller, once per structure.

A training loop has the same fetches in every run, in new dicts and lists. TensorFlow's
`_FetchHandler` is slow to make and slow to use, so its result is cached.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_ops import as_operation
from tpu_estimator_compat.tf_internals import _FetchHandler

_LEAVES = (tf.Tensor, tf.Operation, tf.Variable)
_MOST = 64  # limits the cache for a caller with new fetches in each run


@dataclasses.dataclass(frozen=True)
class Fetched:
    """The tensors and operations of one structure of fetches, each tensor once.

    `results` makes a structure like that of the fetches from the tensors' values.
    """

    tensors: Sequence[tf.Tensor]
    targets: Sequence[tf.Operation]
    results: Callable[[Sequence[Any]], Any]


class FetchHandlers:
    """Flattens fetches of one graph, and caches the result by structure."""

    def __init__(self, graph: tf.Graph):
        self._graph = graph
        self._kept: dict[Any, tuple[Fetched, list[Any]]] = {}

    def clear(self) -> None:
        self._kept.clear()

    def __call__(self, fetches: Any, feeds: Any, session: Any) -> Fetched:
        """The tensors and operations of `fetches`; `feeds` are values by tensor reference."""
        leaves: list[Any] = []
        shape = None if feeds else _shape(fetches, leaves)
        if shape is None:
            return self._taken_apart(fetches, feeds, session, may_copy=False)
        kept = self._kept.get(shape)
        if kept is None:
            if len(self._kept) == _MOST:
                self._kept.clear()
            # The leaves are kept as well, so that no other object gets an id of `shape`.
            kept = self._taken_apart(fetches, {}, session, may_copy=True), leaves
            self._kept[shape] = kept
        return kept[0]

    def _taken_apart(self, fetches: Any, feeds: Any, session: Any, *, may_copy: bool) -> Fetched:
        handler = _FetchHandler(self._graph, fetches, feeds)
        asked = handler.fetches()
        results: Callable[[Sequence[Any]], Any]
        results = functools.partial(handler.build_results, session)
        if may_copy:
            marks = [object() for _ in asked]
            met: set[int] = set()
            like_marks = copier(results(marks), marks, met)
            if len(met) == len(marks):  # otherwise the handler converts a value
                results = like_marks
        return Fetched(
            tuple(map(session.value_if_handle, asked)),
            tuple(map(as_operation, handler.targets())),
            results,
        )


def _shape(fetches: Any, leaves: list[Any]) -> Any:
    """Structure and leaves as a hashable key; None if a key cannot represent `fetches`."""
    kind = type(fetches)
    if kind is str:
        return fetches
    if isinstance(fetches, _LEAVES):
        leaves.append(fetches)
        return id(fetches)
    named = kind is dict
    if not named and not isinstance(fetches, (list, tuple)):
        return None
    shape: list[Any] = [kind, *fetches] if named else [kind]
    for value in fetches.values() if named else fetches:
        part = _shape(value, leaves)
        if part is None:
            return None
        shape.append(part)
    return tuple(shape)


def copier(
    structure: Any, marks: Sequence[Any], met: set[int] | None = None
) -> Callable[[Sequence[Any]], Any]:
    """A function that fills a structure of `marks` and other leaves with values.

    Values have the order of `marks`; `met` gets the indices in `marks` of those that occur.
    """
    return _copier(
        structure, {id(m): i for i, m in enumerate(marks)}, set() if met is None else met
    )


def _copier(
    structure: Any, places: dict[int, int], met: set[int]
) -> Callable[[Sequence[Any]], Any]:
    place = places.get(id(structure))
    if place is not None:
        met.add(place)
        return operator.itemgetter(place)
    if isinstance(structure, dict):
        named = [(k, _copier(v, places, met)) for k, v in structure.items()]
        return lambda values: {k: part(values) for k, part in named}
    if isinstance(structure, (list, tuple)):
        kind = type(structure)
        parts = [_copier(v, places, met) for v in structure]
        if kind is list:
            return lambda values: [part(values) for part in parts]
        if kind is tuple:
            return lambda values: tuple([part(values) for part in parts])
        return lambda values: kind(*[part(values) for part in parts])
    return lambda values: structure
