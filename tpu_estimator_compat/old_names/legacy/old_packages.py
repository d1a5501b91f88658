"""Finds installed packages that are legacy: they use names that TensorFlow dropped.

A package is legacy if its metadata mentions TensorFlow, and one of its modules uses `tf.contrib`,
`tf.estimator` or `tensorflow_estimator`. Modern packages test for these names in a `try` or with
`getattr`: such uses do not count, nor do test files. tf_slim uses neither name, but other dropped
names.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterable, Iterator

from tpu_estimator_compat.old_names.legacy.references import Form, references
from tpu_estimator_compat.old_names.legacy.table import canonical

_NEVER = {"keras", "tensorflow", "tensorflow_estimator", "tf_keras", "tpu_estimator_compat"}
_ALWAYS = {"tf_slim"}
_DROPPED = {"contrib", "estimator"}
_MAY_USE = re.compile(
    rb"tensorflow_estimator|\b(tf\w*|tensorflow|v1)\.(contrib|estimator)\b"
    rb"|\bfrom\s+tensorflow\b.*\bimport\b.*\b(contrib|estimator)\b"
)
"""Matches the text of modules that use such a name; parsing takes a hundred times as long."""


class OldPackages:
    """Finds legacy installed packages at their import; those in `exempt` never count as legacy."""

    def __init__(self, exempt: Iterable[str] = ()):
        self._never = _NEVER.union(exempt, sys.stdlib_module_names)
        self._found = dict.fromkeys(_ALWAYS - self._never, True)

    def may_have(self, top: str) -> bool:
        """Whether a top-level package or module may be legacy."""
        if top in self._never:
            return False
        return self._found.get(top, top in self._of_tensorflow)

    def has(self, top: str, origin: str) -> bool:
        """Whether a package is legacy; `origin`, its first imported file, locates the sources."""
        if not self.may_have(top):
            return False
        if top not in self._found:
            self._found[top] = any(map(_uses_dropped_names, _sources(origin)))
        return self._found[top]

    @functools.cached_property
    def _of_tensorflow(self) -> frozenset[str]:
        found = filter(_mentions_tensorflow, importlib.metadata.distributions())
        return frozenset(top for distribution in found for top in _tops(distribution))


def _mentions_tensorflow(distribution: importlib.metadata.Distribution) -> bool:
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    return "tensorflow" in text.lower()


def _tops(distribution: importlib.metadata.Distribution) -> set[str]:
    listed = distribution.read_text("top_level.txt")
    if listed:
        return set(listed.split())
    parts = {file.parts[0] for file in distribution.files or () if file.suffix == ".py"}
    return {part.removesuffix(".py") for part in parts}


def _sources(origin: str) -> Iterator[str]:
    if os.path.basename(origin) != "__init__.py":
        yield origin
        return
    for folder, below, files in os.walk(os.path.dirname(origin)):
        below[:] = sorted(name for name in below if name not in ("test", "tests", "testing"))
        for file in sorted(files):
            if file.endswith(".py") and not file.endswith("_test.py") and file[:5] != "test_":
                yield os.path.join(folder, file)


def _uses_dropped_names(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            source = file.read()
        tree = ast.parse(source) if _MAY_USE.search(source) else None
    except (OSError, SyntaxError, ValueError):  # a broken link, Python 2, null bytes
        return False
    return tree is not None and _names_dropped(tree)


def _names_dropped(tree: ast.Module) -> bool:
    tried = [
        range(node.lineno, node.handlers[0].lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and node.handlers
    ]
    return any(
        _is_dropped(reference.path)
        for reference in references(tree)
        if reference.form not in (Form.GETATTR, Form.STRING)
        and not any(reference.line in lines for lines in tried)
    )


def _is_dropped(path: str) -> bool:
    parts = canonical(path).split(".")
    if parts[0] == "tensorflow_estimator":
        return True
    return parts[0] == "tf" and len(parts) > 1 and parts[1] in _DROPPED
