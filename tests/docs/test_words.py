"""Words that no text has, and messages that a user without a clone can follow."""

import ast
import pathlib
import re

import tpu_estimator_compat

[_package] = tpu_estimator_compat.__path__
PACKAGE = pathlib.Path(_package)
SOURCES = sorted(PACKAGE.rglob("*.py"))
NODES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
INVENTED = re.compile(r"manieth|\bwhoever\b|\bwhat stands for\b", re.IGNORECASE)
TEXTS = [
    *SOURCES,
    *sorted(PACKAGE.parent.glob("migration_guide/*.md")),
    PACKAGE.parent / "README.md",
]


def test_no_invented_words():
    found = [str(p.relative_to(PACKAGE.parent)) for p in TEXTS if INVENTED.search(p.read_text())]
    assert not found


def test_messages_do_not_send_to_pages_that_a_wheel_has_not():
    """A message carries the line itself: who installed the package has no clone of the guide."""
    found = []
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        docstrings = {
            ast.get_docstring(n, clean=False) for n in ast.walk(tree) if isinstance(n, NODES)
        }
        found += [
            (str(path.relative_to(PACKAGE)), node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "migration_guide" in node.value
            and node.value not in docstrings
        ]
    assert not found
