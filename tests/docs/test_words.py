"""Words: the first line of a docstring names its subject by a noun of the field."""

import ast
import pathlib
import re

import pytest

import tpu_estimator_compat

[_package] = tpu_estimator_compat.__path__
PACKAGE = pathlib.Path(_package)
SOURCES = sorted(PACKAGE.rglob("*.py"))
NODES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PRONOUN = re.compile(r"(What|How|Where|Who|Whoever|Those|That|Such|Nothing|Of|It)\b(?! as )")


def first_lines(source):
    """The first lines of the docstrings of a module, with the names of what they describe."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, NODES) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "module"), text.split("\n")[0]


def behind_pronouns(source):
    return [(name, line) for name, line in first_lines(source) if PRONOUN.match(line)]


def test_a_pronoun_is_found():
    source = '"""Loops of steps."""\n\ndef made():\n    """How many steps there were."""\n'
    assert behind_pronouns(source) == [("made", "How many steps there were.")]


@pytest.mark.parametrize("room", sorted({p.relative_to(PACKAGE).parts[0] for p in SOURCES}))
def test_first_lines_begin_with_a_noun_or_a_verb(room):
    found = {
        str(path.relative_to(PACKAGE)): lines
        for path in SOURCES
        if path.relative_to(PACKAGE).parts[0] == room
        and (lines := behind_pronouns(path.read_text()))
    }
    assert not found


ARGUMENT = re.compile(r" {2,}\*{0,2}[a-z_]\w*: (what|how|who|which|where|whose|those|such|it)\b")


def test_arguments_and_attributes_are_described_by_nouns():
    """`steps: how many steps ran` hides the noun that a reader looks for."""
    found = [
        (str(path.relative_to(PACKAGE)), line.strip())
        for path in SOURCES
        for line in path.read_text().split("\n")
        if ARGUMENT.match(line)
    ]
    assert not found


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
