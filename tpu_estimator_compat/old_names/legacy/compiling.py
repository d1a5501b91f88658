"""Compiles a legacy module, and says which TensorFlow and which Python its names show."""

from __future__ import annotations

import ast
import dataclasses
import types

from tpu_estimator_compat.old_names.legacy.dialect import Dialect, makes_graphs, names_api, told
from tpu_estimator_compat.old_names.legacy.python_numpy import numpy_methods, python2
from tpu_estimator_compat.old_names.legacy.references import Form, references


@dataclasses.dataclass(frozen=True)
class Shown:
    """What the names that a module uses show.

    Attributes:
      path: the module's file.
      dialect: the dialect that the names show; None if they show none.
      names_api: whether the module uses `tensorflow` beyond its `compat`, `core` and `python`.
      makes_graphs: whether the module makes placeholders or sessions of `tensorflow.compat.v1`.
      python_2: builtins of Python 2 that the module uses.
    """

    path: str
    dialect: Dialect | None = None
    names_api: bool = False
    makes_graphs: bool = False
    python_2: tuple[str, ...] = ()


def compiled(source: bytes, path: str, *, numpy: bool) -> tuple[types.CodeType, Shown]:
    """Compiles a module; `numpy` says whether calls that NumPy dropped are rewritten."""
    with python2.explained(source, path):
        tree = ast.parse(source, path)
    code = numpy_methods.mended(tree) if numpy else tree
    return compile(code, path, "exec", dont_inherit=True), shown(tree, path)


def shown(tree: ast.Module, path: str) -> Shown:
    found = references(tree)
    names = sorted({r.path.rpartition(".")[2] for r in found if r.form is Form.BUILTIN})
    graphs = makes_graphs(tree, found)
    return Shown(path, told(found), names_api(found), graphs, tuple(names))
