"""Compiles a legacy module, and says which TensorFlow and which Python its names show."""

from __future__ import annotations

import ast
import dataclasses
import types

from tpu_estimator_compat.old_names.legacy import numpy_methods, python2
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, makes_graphs, names_api, told
from tpu_estimator_compat.old_names.legacy.references import Form, references


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A module that is ready to run.

    Attributes:
      dialect: the dialect that the module's own names show; None if they show none.
      names_api: whether the module uses `tensorflow` beyond its `compat`, `core` and `python`.
      makes_graphs: whether the module makes placeholders or sessions of `tensorflow.compat.v1`.
      python_2: builtins of Python 2 that the module uses.
    """

    code: types.CodeType
    dialect: Dialect | None
    names_api: bool
    makes_graphs: bool
    python_2: tuple[str, ...] = ()


def compiled(source: bytes, path: str, *, numpy: bool) -> Compiled:
    """Compiles a module; `numpy` says whether calls that NumPy dropped are rewritten."""
    with python2.explained(source, path):
        tree = ast.parse(source, path)
    return of_tree(tree, path, numpy=numpy)


def of_tree(tree: ast.Module, path: str, *, numpy: bool) -> Compiled:
    found = references(tree)
    shown = told(found), names_api(found), makes_graphs(tree, found)
    code = numpy_methods.mended(tree) if numpy else tree
    names = sorted({r.path.rpartition(".")[2] for r in found if r.form is Form.BUILTIN})
    return Compiled(compile(code, path, "exec", dont_inherit=True), *shown, tuple(names))
