"""Caches the compiled code of legacy modules in files beside Python's bytecode.

Reading the dialect from a syntax tree takes a hundred times as long as loading bytecode. Python's
files have no place for the dialect, and `--numpy-legacy` changes the code. So `__pycache__` gets a
second file, under the same conditions: not with `python -B` or PYTHONDONTWRITEBYTECODE, nor in a
read-only folder.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib.machinery
import importlib.resources
import importlib.util
import marshal
import sys
import types
from importlib.util import source_hash

from tpu_estimator_compat.old_names.legacy import numpy_methods, python2
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, makes_graphs, names_api, told
from tpu_estimator_compat.old_names.legacy.references import Form, references

_ENDING = ".legacy.pyc"
_HASH = 8  # bytes of a source_hash
Spec = importlib.machinery.ModuleSpec
# The modules and lists that determine a source's code and dialect.
_RULES = (
    "bytecode.py",
    "dialect.py",
    "numpy_methods.py",
    "own_graphs.py",
    "python2.py",
    "references.py",
)
_LISTS = ("only_v1.txt", "only_v2.txt")


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


def loaded(loader: importlib.machinery.SourceFileLoader, spec: Spec, *, numpy: bool) -> Compiled:
    """Loads a module's `Compiled` from the cache file, or compiles it if the source has changed."""
    path = loader.get_filename(spec.name)
    source = loader.get_data(path)
    if spec.cached is None:  # bytecode caching is off
        return compiled(source, path, numpy=numpy)
    file = spec.cached.removesuffix(".pyc") + _ENDING
    key = _key(source, path, numpy)
    kept = _read(loader, file, key)
    if kept is not None:
        return kept
    made = compiled(source, path, numpy=numpy)
    if not sys.dont_write_bytecode:
        dialect = made.dialect and made.dialect.value
        shown = made.code, dialect, made.names_api, made.makes_graphs, made.python_2
        content = marshal.dumps(shown)
        loader.set_data(file, source_hash(key + content) + content)  # atomic
    return made


def _read(loader: importlib.machinery.SourceFileLoader, file: str, key: bytes) -> Compiled | None:
    """The contents of a cache file; None if it is missing, damaged or made from another source."""
    try:
        data = loader.get_data(file)
    except OSError:
        return None
    content = data[_HASH:]
    if source_hash(key + content) != data[:_HASH]:
        return None
    code, dialect, *shown = marshal.loads(content)
    return Compiled(code, dialect and Dialect(dialect), *shown)


def _key(source: bytes, path: str, numpy: bool) -> bytes:
    python = (importlib.util.MAGIC_NUMBER, sys.flags.optimize, numpy, path)
    return repr(python).encode() + _rules() + source_hash(source)


@functools.cache
def _rules() -> bytes:
    package = importlib.resources.files(__package__)
    files = [package / name for name in _RULES] + [package / "names" / name for name in _LISTS]
    return source_hash(b"\0".join(file.read_bytes() for file in files))
