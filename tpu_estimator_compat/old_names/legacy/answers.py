"""Looks up any name of a script: makes a row for a name that the table lacks."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.old_names.legacy import namespaces, overlay, table
from tpu_estimator_compat.old_names.legacy.table import DeadName, Status

_NOTHING: Any = object()  # a sentinel, since None is the value of tf.newaxis


def of(name: str) -> DeadName | None:
    """A row for a name in the table's spelling; None if nothing has the name."""
    above = table.load().covering(name)
    for root in _roots(name):
        thing = _found(root, name)
        if isinstance(thing, overlay.Refused):
            assert above is not None  # a refusal is made from a row
            return dataclasses.replace(above, name=name, status=Status.REFUSED, served_by="")
        if thing is not _NOTHING and above and above.status is Status.REFUSED:
            served = name.replace("tf.", "tpu_estimator_compat.v1.", 1)
            said = f"Some of its names work. For the others: {above.advice}"
            return DeadName(name, above.since, Status.DIFFERS, served, advice=said)
        if thing is not _NOTHING and above:
            following = name.removeprefix(above.name)
            served = f"{above.served_by}{following}"
            moved = above.move_to and f"{above.move_to}{following}"
            ours = _found(overlay._serve(above), following)
            if table.is_of_original(name) and ours is _NOTHING:
                served, moved = overlay.of_copy(name), ""
            said = above.advice if above.status is Status.DIFFERS else ""
            return DeadName(name, above.since, above.status, served, moved, said)
        if thing is not _NOTHING:
            alive = _found(tf.compat.v1, name) is not _NOTHING
            today = name.replace("tf.", "tf.compat.v1.", 1) if alive else name
            served = today.replace("tf.", "tensorflow.", 1)
            return DeadName(name, "", Status.WORKS, served, today, "TensorFlow still has it.")
    return None


def like(name: str) -> list[str]:
    """Similar names that exist, for a name that nothing has."""
    above, _, last = name.rpartition(".")
    for root in _roots(name) if above else ():
        thing = _found(root, above)
        if thing is not _NOTHING and not isinstance(thing, overlay.Refused):
            public = [each for each in dir(thing) if not each.startswith("_")]
            return [f"{above}.{each}" for each in difflib.get_close_matches(last, public, 3, 0.7)]
    return like(above) if above else []


def _roots(name: str) -> list[Any]:
    if name.partition(".")[0] == "tensorflow_estimator":
        return [namespaces.tensorflow_estimator()]
    return [namespaces.v1(), namespaces.v2()]


def _found(root: Any, name: str) -> Any:
    parts = name.split(".")[1:]
    thing = root
    for number, part in enumerate(parts, start=1):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            if not isinstance(root, overlay.Namespace):
                return _NOTHING
            try:
                thing = overlay.module(root, ".".join(parts[:number]))
            except ImportError:
                return _NOTHING
    return thing
