"""Runs proofs: one test for each, that goes through all of its rows."""

import inspect
import pathlib
import types
from collections.abc import Callable
from typing import Any

import pytest

from support.proofs import PROOFS, Proof
from tpu_estimator_compat.old_names.legacy import namespaces, overlay

_MISSING = object()


def found(row: str) -> Any:
    """What the namespaces give for a name of the table, or for an attribute below it."""
    name, _, attribute = row.partition(":")
    root, _, path = name.partition(".")
    top = namespaces.v1() if root == "tf" else namespaces.tensorflow_estimator()
    parent, _, last = path.rpartition(".")
    thing = overlay.member(overlay.module(top, parent), name, last) if path else top
    return getattr(thing, attribute) if attribute else thing


def each_proof_of(*modules: types.ModuleType) -> Callable[..., None]:
    """A test that runs every proof of these modules."""
    names = {module.__name__ for module in modules}
    proofs = [proof for proof in PROOFS if proof.__module__ in names]

    @pytest.mark.parametrize("proof", proofs, ids=lambda proof: proof.__name__)
    def test(proof: Proof, tmp_path: pathlib.Path) -> None:
        prove(proof, tmp_path)

    return test


def prove(proof: Proof, folder: pathlib.Path) -> None:
    """Runs a proof for every thing that its rows stand for, once for each.

    A row that stands for the thing of an earlier one is proved by that. So is a module in which
    everything that the proof took from an earlier one is the same.

    Args:
      proof: gets the thing, and a new folder if it has an argument `tmp_path`.
      folder: for its files.
    """
    wants_folder = "tmp_path" in inspect.signature(proof).parameters
    proved: list[_Watched] = []
    for number, row in enumerate(PROOFS[proof]):
        thing = found(row)
        if any(each.is_proof_of(thing) for each in proved):
            continue
        watched = _Watched(thing)
        arguments = [watched.given]
        if wants_folder:
            arguments.append(folder / str(number))
            arguments[-1].mkdir()
        try:
            proof(*arguments)
        except BaseException as error:
            error.add_note(f"{proof.__name__} of {row}")
            raise
        proved.append(watched)


class _Watched:
    """A thing, and what a proof took from it.

    Attributes:
      given: what the proof gets: the thing itself, or a module in its place that notes what is
        taken from it.
    """

    def __init__(self, thing: Any):
        self._thing = thing
        is_module = isinstance(thing, types.ModuleType)
        self.given = _Noting(thing) if is_module else thing

    def is_proof_of(self, other: Any) -> bool:
        if other is self._thing:
            return True
        if not isinstance(other, types.ModuleType) or not isinstance(self.given, _Noting):
            return False
        taken = self.given.taken_names
        return bool(taken) and all(
            getattr(other, name, _MISSING) is value for name, value in taken.items()
        )


class _Noting(types.ModuleType):
    """A module in the place of another, that notes what is taken from it.

    Args:
      module: where everything is.
    """

    def __init__(self, module: types.ModuleType):
        super().__init__(module.__name__)
        self.taken_names: dict[str, Any] = {}
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = self.taken_names[name] = getattr(self._module, name, _MISSING)
        if value is _MISSING:
            raise AttributeError(name)
        return value
