"""The calls of estimators' methods in the source of a script, as far as names tell."""

from __future__ import annotations

import ast
import os
import pathlib
from collections.abc import Iterable, Sequence

from tpu_estimator_compat.old_names.legacy.python_numpy import python2
from tpu_estimator_compat.tools.dry_run.report import Call, NotReached

_METHODS = {
    "evaluate",
    "experimental_export_all_saved_models",
    "export_saved_model",
    "export_savedmodel",
    "fit",
    "predict",
    "train",
    "train_and_evaluate",
}


def not_reached(files: Iterable[str], calls: Sequence[Call]) -> tuple[NotReached, ...]:
    """The calls in these files whose lines do not occur in `calls`."""
    reached = {(call.file, call.line) for call in calls}
    found = []
    for file in dict.fromkeys(files):
        for node, name in _calls(file):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if not any((file, line) in reached for line in lines):
                found.append(NotReached(name, file, node.lineno))
    return tuple(found)


def _calls(file: str) -> list[tuple[ast.Call, str]]:
    if not os.path.isfile(file):
        return []
    try:
        tree = python2.mended(pathlib.Path(file).read_text(encoding="utf-8")).tree
    except (SyntaxError, ValueError):  # a notebook, bytecode, or an error that the run has shown
        return []
    found = [(node, _method(node)) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted(((n, name) for n, name in found if name), key=lambda pair: pair[0].lineno)


def _method(call: ast.Call) -> str:
    function = call.func
    is_method = isinstance(function, ast.Attribute) and function.attr in _METHODS
    return function.attr if is_method and isinstance(function, ast.Attribute) else ""
