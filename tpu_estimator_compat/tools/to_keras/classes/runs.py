"""Equal runs of layers without scopes of their own, as functions make them: each becomes a part."""

from __future__ import annotations

import collections
import re
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat.tools.to_keras.author import function_of
from tpu_estimator_compat.tools.to_keras.classes.scopes import Scopes, owned
from tpu_estimator_compat.tools.to_keras.graph import LAYER, Node, Value
from tpu_estimator_compat.tools.to_keras.simplify import is_of_sizes

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.to_keras.classes import Part

_LONGEST = 24
"""The most pieces of a run."""
_OF_ALL = frozenset({"", "model_fn", "call", "__call__", "main"})
"""Functions that make more than a run."""


def group(root: Part, scopes: Scopes) -> bool:
    """Gives the runs that save the most lines of a part scopes of their own; whether there are."""
    for part in root.parts():
        runs = _best(_pieces(part))
        makers = (function_of(run[-1].nodes()[-1].place) for run in runs)
        names = collections.Counter("block" if name in _OF_ALL else name for name in makers)
        for run in runs:
            nodes = [node for item in run for node in item.nodes()]
            scopes.enclose(nodes, part.scope, names.most_common(1)[0][0])
        if runs:
            return True
    return False


def _pieces(part: Part) -> list[list[Node]]:
    """The items between those places where one value is left of all that weights had a part in."""
    last = {value: i for i, item in enumerate(part.items) for value in item.inputs}
    last.update(dict.fromkeys(part.outputs, len(part.items)))
    found: list[list[Node]] = [[]]
    live: set[Value] = set()
    for i, item in enumerate(part.items):
        if live.intersection(item.inputs) or any(map(owned, item.nodes())):
            found[-1].append(item)
            live = {value for value in {*live, *item.outputs} if last.get(value, 0) > i}
            if len(live) == 1:
                found.append([])
    return found[:-1]


def _best(pieces: list[list[Node]]) -> list[list[Node]]:
    """The equal runs of pieces that save lines as calls of one class.

    They are the shortest that save a third of what the best do, as an author's functions are short.
    """
    keys = [_key(piece) for piece in pieces]
    calls = [sum(x.kind in ("Part", LAYER) for x in piece) for piece in pieces]
    own = [0 if i and keys[i - 1] == key else calls[i] for i, key in enumerate(keys)]
    found: list[tuple[int, int, int, list[int]]] = []
    for length in range(1, min(_LONGEST, len(keys) // 2) + 1):
        places: dict[Any, list[int]] = collections.defaultdict(list)
        for i in range(len(keys) - length + 1):
            starts = places[tuple(keys[i : i + length])]
            if not starts or starts[-1] + length <= i:
                starts.append(i)
        for starts in places.values():
            size = sum(own[starts[0] : starts[0] + length]) if calls[starts[0]] else 0
            is_chain = starts[-1] - starts[0] == length * (len(starts) - 1)
            saved = 2 * (len(starts) - 1) * size - 5 - (3 if is_chain else 2 * len(starts))
            if size > 1 and saved > 0:
                found.append((length, -saved, -starts[0], starts))  # the last: after a stem
    if not found:
        return []
    most = max(-each[1] for each in found)
    length, *_, starts = min(each for each in found if -3 * each[1] >= most)
    ends = [i + length for i in starts]
    while ends[-1] < len(keys) and not calls[ends[0]] and len({keys[i] for i in ends}) == 1:
        ends = [i + 1 for i in ends]  # operations without a layer that follow each
    return [
        [item for piece in pieces[i:j] for item in piece] for i, j in zip(starts, ends, strict=True)
    ]


def _key(items: list[Node]) -> Any:
    """What equal pieces have in common: all but numbers and names."""
    numbers: dict[Value, int] = {}
    found = []
    for item in items:
        given = [v for v in item.inputs if v.constant is None and v.weight is None]
        if item.bodies or any(map(is_of_sizes, given)):
            return object()
        found.append((_what(item), *(numbers.setdefault(v, len(numbers)) for v in given)))
        numbers.update({value: len(numbers) + i for i, value in enumerate(item.outputs)})
    return tuple(found)


def _what(item: Node) -> Any:
    if item.kind == "Part":
        return tuple(_what(node) for node in item.nodes())
    if item.kind == LAYER:
        layer = item.layer
        return layer.cls, len(layer.args), *sorted(layer.bound), str(layer.call)
    return item.kind, re.sub(r"\d+", "#", str(item.attrs))
