"""Looks up any name of a script: makes a row for a name that the table lacks.

The tables, and the source of the installed TensorFlow's API, tell of most names. TensorFlow is
imported for the others only, since that takes seconds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from tpu_estimator_compat.old_names.legacy import overlay, table
from tpu_estimator_compat.old_names.legacy.table import DeadName, Status

_NOTHING: Any = object()  # a sentinel, since None is the value of tf.newaxis
_APIS = {"compat.v1.": "_api/v2/compat/v1", "": "_api/v2"}
"""The two APIs: how a name of each is written, and the folder of their source in TensorFlow's."""


def of(name: str) -> DeadName | None:
    """A row for a name in the table's spelling; None if nothing has the name."""
    above = table.load().covering(name)
    if above is None:
        namespace, _, last = name.rpartition(".")
        api = next((api for api in _APIS if last in _public(api, namespace)), None)
        return _looked_up(name, None) if api is None else _alive(name, api)
    if above.status is Status.REFUSED:
        if not table.load().below(name):
            return _refused(name, above)
        said = f"Some of its names work. For the others: {above.advice}"
        served = name.replace("tf.", "tpu_estimator_compat.v1.", 1)
        return DeadName(name, above.since, Status.DIFFERS, served, advice=said)
    listed = table.provided().get(table.main_path(above.name), ())
    is_listed = name.removeprefix(f"{above.name}.") in listed and not table.load().below(name)
    return _served(name, above) if is_listed else _looked_up(name, above)


@functools.cache
def _public(api: str, namespace: str) -> frozenset[str]:
    """The names that the source of the installed TensorFlow's API imports into a namespace."""
    found = importlib.util.find_spec("tensorflow")
    folder = os.path.dirname((found and found.origin) or "")
    path = os.path.join(folder, _APIS[api], *namespace.split(".")[1:], "__init__.py")
    try:
        with open(path, encoding="utf-8") as file:
            return frozenset(re.findall(r"^from \S+ import (?:\w+ as )?(\w+)", file.read(), re.M))
    except OSError:
        return frozenset()


def _alive(name: str, api: str) -> DeadName:
    today = name.replace("tf.", f"tf.{api}", 1)
    served = today.replace("tf.", "tensorflow.", 1)
    return DeadName(name, "", Status.WORKS, served, today, "TensorFlow still has it.")


def _refused(name: str, above: DeadName) -> DeadName:
    return dataclasses.replace(above, name=name, status=Status.REFUSED, served_by="")


def _served(name: str, above: DeadName) -> DeadName:
    following = name.removeprefix(above.name)
    moved = above.move_to and f"{above.move_to}{following}"
    said = above.advice if above.status is Status.DIFFERS else ""
    served = f"{above.served_by}{following}"
    return DeadName(name, above.since, above.status, served, moved, said)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Within, the process writes nothing to standard error, as TensorFlow does at its import."""
    if sys.stderr is not None:
        sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


@_silent()
def _looked_up(name: str, above: DeadName | None) -> DeadName | None:
    """The row of a name by what scripts get; `above` is the row above it, which is not refused."""
    import tensorflow as tf

    for root in _roots(name):
        thing = _found(root, name)
        if thing is _NOTHING:
            continue
        if above is None:
            todays = {"compat.v1.": tf.compat.v1, "": tf}
            for api, today in todays.items():
                if _found(today, name) is not _NOTHING:
                    return _alive(name, api)
            served = name.replace("tf.", "tpu_estimator_compat.v1.", 1)
            return DeadName(name, "", Status.WORKS, served)
        if isinstance(thing, overlay.Refused):
            return _refused(name, above)
        row = _served(name, above)
        ours = _found(overlay._serve(above), name.removeprefix(above.name))
        if table.is_of_original(name) and ours is _NOTHING:
            return dataclasses.replace(row, served_by=overlay.of_copy(name), move_to="")
        return row
    return None


@_silent()
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
    from tpu_estimator_compat.old_names.legacy import namespaces

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
