"""Python 2 sources: how to recognize and convert them, and the builtins that scripts get."""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import functools
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

NAMES: dict[str, str] = {
    "basestring": "str",
    "long": "int",
    "raw_input": "input",
    "reduce": "functools.reduce",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}
"""Builtins of Python 2 to their replacements."""

METHODS: dict[str, str] = {
    f"{kind}{what}": what for kind in ("iter", "view") for what in ("items", "keys", "values")
}
"""Maps Python 2's dict methods, called without arguments, to their replacements."""

SEMANTICS_WARNING = (
    "The file was written for Python 2, where `/` of two integers gave an integer, and `map`, "
    "`filter`, `zip` and `keys()` gave lists."
)

_PRINT = "`print x` is `print(x)` now"
_MARKED = "_print_of_python_2="
"""Marks a `print` statement until the whole module parses; its end is known only then."""

_BARE_PRINT = re.compile(r"^[ \t]*print[ \t]*(>>|#|;|\\?$)", re.MULTILINE)

# Pattern in a line, advice, and a replacement if it is certain to be equivalent.
_SIGNS: list[tuple[str, str, str | None]] = [
    (r"^\s*print\s+[^(=\s]", _PRINT, None),
    (r"^\s*print\s*>>", "`print >>f, x` is `print(x, file=f)` now", None),
    (
        r"\bexcept\s+([\w.]+|\([\w., ]+\))\s*,\s*(\w+)\s*:",
        "`except E, e:` is `except E as e:` now",
        r"except \1 as \2:",
    ),
    (
        r"^(\s*)raise\s+([\w.]+)\s*,\s*([^,#]+?)\s*$",
        '`raise E, "..."` is `raise E("...")` now',
        r"\1raise \2(\3)",
    ),
    (r"^\s*raise\s+[\w.]+\s*,", '`raise E, "..."` is `raise E("...")` now', None),
    (r"^\s*exec\s+[\"'\w]", "`exec code` is `exec(code)` now", None),
    (r"\b0[0-7]+\b|\b\d+[lL]\b", "`010` is `0o10`, and `10L` is `10` now", None),
    (r"<>", "`a <> b` is `a != b` now", None),
    (r"`[^`]+`", "`` `x` `` is `repr(x)` now", None),
    (r"\bur[\"']", '`ur"..."` is `r"..."` now', None),
    (
        r"\b(def\s+\w+|lambda)\s*\(?[^)]*\([\w, ]+\)",
        "parameters cannot be tuples now",
        None,
    ),
]
_WAY_OUT = (
    "This looks like Python 2. Convert it once, for example with `2to3 -w FILE` (it comes with "
    "Python up to 3.12) or `pip install fissix && fissix -w FILE`."
)


@contextlib.contextmanager
def explained(source: bytes | str, path: str) -> Iterator[None]:
    """Adds advice to a syntax error raised in the block, if its line is Python 2."""
    try:
        yield
    except SyntaxError as error:
        advice = sign(error, source)
        if advice is not None:
            error.filename = error.filename or path
            error.add_note(advice)
        raise


def sign(error: SyntaxError, source: bytes | str) -> str | None:
    """Advice on a syntax error whose line is Python 2; None for any other."""
    text = source.decode("utf-8", "replace") if isinstance(source, bytes) else source
    lines = text.splitlines()
    number = error.lineno or 0
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    if isinstance(error, TabError):
        return f"{_WAY_OUT} Tabs and spaces may not be mixed now."
    for pattern, today, _ in _SIGNS:
        if re.search(pattern, line):
            return f"{_WAY_OUT} In this line, {today}."
    return None


def given(names: Iterable[str]) -> dict[str, Any]:
    here = {**vars(builtins), "functools.reduce": functools.reduce}
    return {name: here[NAMES[name]] for name in names}


@dataclasses.dataclass(frozen=True)
class Mended:
    """A module of Python 3, perhaps converted from Python 2, with the same number of lines.

    `changes` are (line number, advice) of converted lines, in the order of conversion.
    """

    text: str
    tree: ast.Module
    changes: tuple[tuple[int, str], ...] = ()


def mended(text: str) -> Mended:
    """Converts to Python 3 what is unambiguous: `print` statements and other old syntax.

    If the conversion is not certain, raises the SyntaxError of the given text.
    """
    tree = _parsed(text)
    if _MARKED in text:
        if isinstance(tree, SyntaxError):
            raise tree
        return Mended(text, tree)
    if isinstance(tree, ast.Module):
        return _with_calls(Mended(text, tree))
    first, now, changes = tree, text, []
    while isinstance(tree, SyntaxError):
        found = _mended_at(now, tree)
        if found is None:
            raise first
        now, change = found
        changes.append(change)
        tree = _parsed(now)
    return _with_calls(Mended(now, tree, tuple(changes)))


def _parsed(text: str) -> ast.Module | SyntaxError:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # the user's, such as "\d"
            return ast.parse(text)
    except SyntaxError as error:
        return error


def _mended_at(text: str, error: SyntaxError) -> tuple[str, tuple[int, str]] | None:
    """The text without the error, and the change; None if the conversion is not certain."""
    lines = _lines(text)
    number, start = error.lineno or 0, (error.offset or 1) - 1
    if not 0 < number <= len(lines):
        return None
    line = lines[number - 1]
    prints = [m.start() for m in re.finditer(r"\bprint\b", line)]
    if "Missing parentheses in call to 'print'" in error.msg and prints:
        # After a continued line, Python may count in bytes.
        at = min(prints, key=lambda column: abs(column - start))
        lines[number - 1] = line[:at] + _MARKED + line[at + len("print") :]
        return "".join(lines), (number, _PRINT)
    content = line.rstrip("\r\n")
    for pattern, said, instead in _SIGNS:
        if instead is not None and re.search(pattern, content):
            lines[number - 1] = re.sub(pattern, instead, content) + line[len(content) :]
            return "".join(lines), (number, said)
    return None


def _with_calls(module: Mended) -> Mended:
    """Converts `print` statements to calls: marked ones, and those that parse as expressions."""
    if _MARKED not in module.text and not _BARE_PRINT.search(module.text):
        return module
    lines, changes = _lines(module.text), list(module.changes)
    found = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign | ast.Expr) and _is_print(node)
    ]
    for statement in sorted(found, key=lambda s: (s.lineno, s.col_offset), reverse=True):
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        # `ast` counts in bytes of UTF-8.
        start = len(lines[first - 1].encode()[: statement.col_offset].decode())
        end = len(lines[last - 1].encode()[: statement.end_col_offset].decode())
        lines = _lines(_replaced(lines, (first, start, last, end), _called))
        if isinstance(statement, ast.Expr):
            changes.append((first, _PRINT))
    if not found:
        return module
    text = "".join(lines)
    return Mended(text, ast.parse(text), tuple(changes))


def _is_print(statement: ast.Assign | ast.Expr) -> bool:
    """Whether a statement is `print` alone, `print >>f, x`, or a marked `print x`."""
    node = statement.value if isinstance(statement, ast.Expr) else statement.targets[0]
    if isinstance(statement, ast.Assign):
        return isinstance(node, ast.Name) and f"{node.id}=" == _MARKED
    if isinstance(node, ast.Tuple):
        node = node.elts[0] if node.elts else node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
        node = node.left
    elif not isinstance(node, ast.Name):
        return False
    return isinstance(node, ast.Name) and node.id == "print"


def _called(statement: str) -> str:
    """The call that is equivalent to a `print` statement.

    >>> _called("print >>f, 'a',")
    "print('a', file=f, end=' ')"
    """
    rest = statement.removeprefix(_MARKED).removeprefix("print").strip()
    options = []
    if rest.startswith(">>"):
        stream, rest = _split(rest.removeprefix(">>").strip())
        options.append(f"file={stream}")
    if rest.endswith(","):
        options.append("end=' '")
        rest = rest.removesuffix(",").rstrip()
    return f"print({', '.join([*([rest] if rest else []), *options])})"


def _split(text: str) -> tuple[str, str]:
    """The first expression before a comma, and the text after the comma."""
    for comma in re.finditer(",", text):
        if isinstance(_parsed(text[: comma.start()]), ast.Module):
            return text[: comma.start()].rstrip(), text[comma.end() :].strip()
    return text, ""


def _replaced(lines: list[str], span: tuple[int, int, int, int], make: Any) -> str:
    """The text with `make(statement)` in place of the statement in a span of lines and columns."""
    first, start, last, end = span
    block = "".join(lines[first - 1 : last])
    size = len(block) - len(lines[last - 1]) + end
    made = block[:start] + make(block[start:size]) + block[size:]
    return "".join([*lines[: first - 1], made, *lines[last:]])


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
