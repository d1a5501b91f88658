"""Notebook files: reads their cells as Python modules, and puts changed code back.

The code cells that parse become one module, as they share their names; any other, and a cell that
writes a Python file, becomes a module of its own. A comment before each cell gives its number.
Lines that only IPython understands (magics) become calls that Python can parse, and are restored
when code is put back.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import io
import itertools
import json
import re
import tokenize
from collections.abc import Iterator
from json import decoder, scanner
from typing import Any

from tpu_estimator_compat.old_names.legacy.python_numpy import python2

_CALL = "_of_ipython"
_MARK = "#_cell_"
_FIRST_MARK = re.compile(rf"({_MARK}\d*) \d+ \d+\n")
_MAGIC = re.compile(
    r"(?P<indent>\s*)(?P<target>[\w., ]+=\s*)?(?P<text>[%!?].*|[\w.]+\?{1,2}\s*)", re.DOTALL
)
_AROUND_CODE = re.compile(r"(%(?:time|timeit|prun)\s+)(.*)", re.DOTALL)
_NO_WAY_BACK = "Its cells cannot be put back as they were. Rewrite it by hand."
_PYTHON_BELOW = {"%%time", "%%timeit", "%%capture", "%%prun"}
_AUTOMAGIC = re.compile(
    r"(cat|cd|conda|config|cp|env|ldir|less|lf|lk|ll|load_ext|ls|lx|mamba|man|matplotlib|mkdir|more"
    r"|mv|pip|popd|pushd|pwd|rm|rmdir|run|set_env|sx|system|tensorflow_version|who(?:s)?)"
    r"(?![\w.]|\s*[-+*/|&^%]?=)"
)
"""Magics that IPython accepts without `%` if they are the only line of a cell."""
_ONLY_NAMES = (
    *(ast.Expression, ast.expr_context, ast.operator, ast.unaryop),
    *(ast.Name, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Constant),
)
_WRITES = re.compile(r"%%(?:writefile|file)\s+(?:-a\s+)?\S+\.py\s*$")


class NotANotebook(Exception):
    """The file is not a Python notebook; the message says why."""


@dataclasses.dataclass(frozen=True)
class _Replaced:
    """A line that a call replaces.

    Attributes:
      line: the original line or cell; empty if there is a `prefix`.
      prefix: the text between `target` and the code that stays.
      target: the assignment target before the prefix.
    """

    line: str
    prefix: str = ""
    target: str = ""


class _Text(str):
    span: tuple[int, int]


class _Lines(list[Any]):
    span: tuple[int, int]


class Notebook:
    """The code cells of a notebook, from the text of its file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._literals = _sources(text)
        self._replaced: list[_Replaced] = []
        self.sources = {number: "".join(source) for number, source in self._literals.items()}
        """Text of each code cell by its number, from 1, counting all cells."""
        code = "\n".join(self.sources.values())
        self._mark = unused(_MARK, code)
        self._name = unused(_CALL, code)
        self.cells = {number: self._as_python(text) for number, text in self.sources.items()}
        """Code of each cell in `sources`, with calls for magics; ends in a newline."""

    @property
    def may_fail(self) -> set[int]:
        """Numbers of the cells tagged `raises-exception`, after whose errors Jupyter goes on."""
        cells = _cells(json.loads(self._text))
        tags = {n: (cell.get("metadata") or {}).get("tags", ()) for n, cell in cells.items()}
        return {n for n, found in tags.items() if "raises-exception" in found}

    @functools.cached_property
    def divided(self) -> tuple[str, list[str]]:
        """The text of the module of all shared cells, and one for each separate cell.

        A cell is separate if it does not parse, or if it writes a Python file.
        """
        together: list[str] = []
        alone: list[str] = []
        for number, code in self.cells.items():
            first, newline, rest = self.sources[number].partition("\n")
            if _WRITES.match(first):
                alone.append(f"{self._mark} {number} 1\n{rest}\n" if newline else "")
            elif not _is_opaque(self.sources[number]):
                (together if _parses(code) else alone).append(f"{self._mark} {number} 0\n{code}")
        return "".join(together), alone

    def modules(self) -> list[str]:
        """The texts of `divided` that are not empty."""
        shared, alone = self.divided
        return [text for text in (shared, *alone) if text]

    def with_modules(self, modules: list[str]) -> str:
        """The file's text, with the texts `modules` in place of those that `modules()` returns.

        Raises:
          NotANotebook: `modules` have other cells, or cannot be put back.
        """
        new = {}
        for given, text in zip(self.modules(), modules, strict=True):
            parts = list(_parts(text, self._mark))
            if [part[:2] for part in parts] != [part[:2] for part in _parts(given, self._mark)]:
                raise NotANotebook(_NO_WAY_BACK)
            for number, above, code in parts:
                before = self.sources[number].split("\n")[:above]
                lines = code.removesuffix("\n").split("\n")
                new[number] = "\n".join([*before, *map(self._given_back, lines)])
        text = self._text
        for number, source in sorted(new.items(), reverse=True):
            if source != self.sources[number]:
                old = self._literals[number]
                start, end = old.span
                text = text[:start] + _literal(self._text, old, source) + text[end:]
        if Notebook(text).sources != {**self.sources, **new}:
            raise NotANotebook(_NO_WAY_BACK)
        return text

    def _as_python(self, source: str) -> str:
        """The code of a cell, with the same number of lines, and calls for magics."""
        if _is_opaque(source) or _is_automagic(source):
            return self._call(_Replaced(source)) + "\n"
        lines: list[str] = []
        open_lines: list[str] = []  # of an incomplete statement
        in_magic = False
        for line in source.split("\n"):
            found = None if open_lines else _MAGIC.fullmatch(line)
            if in_magic:
                lines.append("#" + self._call(_Replaced(line)))
            elif found is not None:
                lines.append(self._replace(found))
            else:
                lines.append(line)
                open_lines.append(line)
                if not _goes_on(open_lines):
                    open_lines = []
            in_magic = (in_magic or found is not None) and line.endswith("\\")
        return "\n".join(lines) + "\n"

    def _replace(self, found: re.Match[str]) -> str:
        indent, target, text = found["indent"], found["target"] or "", found["text"]
        around = _AROUND_CODE.fullmatch(text)
        if around and _parses(around[2]):
            code = self._call(_Replaced("", around[1], target))
            return f"{indent}{target}{around[2]}  #{code}"
        call = self._call(_Replaced(found[0]))
        return "#" + call if text.startswith("%%") else indent + target + call

    def _call(self, replaced: _Replaced) -> str:
        self._replaced.append(replaced)
        return f"{self._name}({len(self._replaced) - 1})"

    def _given_back(self, line: str) -> str:
        called = rf"(?P<code>.*?)(?:  #|#)?{self._name}\((?P<number>\d+)\)$"
        found = re.fullmatch(called, line, re.DOTALL)
        if found is None:
            return line
        replaced = self._replaced[int(found["number"])]
        if not replaced.prefix:
            return replaced.line
        code = found["code"].lstrip()
        indent = found["code"].removesuffix(code)
        return indent + replaced.target + replaced.prefix + code.removeprefix(replaced.target)


def place(text: str, line: int) -> tuple[int, int]:
    """The cell of a module's line, and the line in that cell; (0, line) outside of notebooks.

    Lines count from 1; 0 is the module as a whole.
    """
    first = _FIRST_MARK.match(text)
    lines = text.split("\n")[:line] if first else []
    for number, found in reversed(list(enumerate(lines, 1))):
        if first and (mark := re.fullmatch(rf"{first[1]} (\d+) (\d+)", found)):
            return int(mark[1]), line - number + int(mark[2]) if line > number else 0
    return 0, line


def where(text: str, line: int) -> str:
    """A line of a module in words: "line 3", or "cell 2, line 3" in a notebook."""
    cell, line = place(text, line)
    return f"cell {cell}, line {line}" if cell else f"line {line}"


def unused(stem: str, text: str) -> str:
    """`stem`, or `stem` with the first number, that does not occur in a text.

    >>> unused("#_cell_", "x = 1  #_cell_")
    '#_cell_0'
    """
    words = itertools.chain([stem], (f"{stem}{number}" for number in itertools.count()))
    return next(word for word in words if word not in text)


def is_notebook(path: str) -> bool:
    return path.endswith(".ipynb")


def _parts(text: str, mark: str) -> Iterator[tuple[int, int, str]]:
    """Yields each cell's number, the number of its first lines left out, and its code."""
    marks = list(re.finditer(rf"^{mark} (\d+) (\d+)\n", text, re.MULTILINE))
    starts = [0, *(found.start() for found in marks[1:])]  # no text may precede the first mark
    for found, start, end in zip(marks, starts, [*starts[1:], len(text)], strict=True):
        if found.start() == start:
            yield int(found[1]), int(found[2]), text[found.end() : end]


def _sources(text: str) -> dict[int, Any]:
    try:
        content = _decoder().decode(text)
        metadata = content.get("metadata", {})
        kernel = metadata.get("kernelspec", {})
        language = metadata.get("language_info", {}).get("name") or kernel.get("language")
        cells = _cells(content)
        found = {n: c["input"] if "input" in c else c["source"] for n, c in cells.items()}
        for source in found.values():
            "".join(source)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise NotANotebook(
            f"It is no notebook: {type(error).__name__}: {error}. A notebook is a JSON object with "
            "a list of `cells`, as Jupyter saves it."
        ) from error
    if "python" not in str(language or "python").lower():
        raise NotANotebook(
            f"It is a notebook of {language}. Only notebooks of Python are supported."
        )
    return found


def _cells(content: Any) -> dict[int, Any]:
    """The code cells by number, in notebook formats 3, 4 and 5."""
    sheets = content.get("worksheets", [content])
    cells = enumerate((cell for sheet in sheets for cell in sheet["cells"]), 1)
    return {number: cell for number, cell in cells if cell["cell_type"] == "code"}


def _decoder() -> json.JSONDecoder:
    """A decoder whose strings and arrays have their spans."""
    made: Any = json.JSONDecoder()

    def parse_string(text: str, start: int, strict: bool) -> tuple[_Text, int]:
        value, end = decoder.scanstring(text, start, strict)  # type: ignore[attr-defined]
        found = _Text(value)
        found.span = start - 1, end
        return found, end

    def parse_array(state: tuple[str, int], scan: Any) -> tuple[_Lines, int]:
        values, end = decoder.JSONArray(state, scan)  # type: ignore[attr-defined]
        found = _Lines(values)
        found.span = state[1] - 1, end
        return found, end

    made.parse_string, made.parse_array = parse_string, parse_array
    made.scan_once = scanner.py_make_scanner(made)  # type: ignore[attr-defined]
    return made  # type: ignore[no-any-return]


def _literal(text: str, old: Any, source: str) -> str:
    """The JSON of a cell's new source, in the format of the old one."""
    is_ascii = text.isascii()
    if not isinstance(old, _Lines) or not old:
        return json.dumps(source, ensure_ascii=is_ascii)
    start, end = old.span
    as_was = {str(line): text[slice(*line.span)] for line in old}
    before = text[start : old[0].span[0]]
    after = text[old[-1].span[1] : end]
    between = text[old[0].span[1] : old[1].span[0]] if len(old) > 1 else f",{before[1:]}"
    lines = source.splitlines(keepends=True)
    literals = [as_was.get(line) or json.dumps(line, ensure_ascii=is_ascii) for line in lines]
    return before + between.join(literals) + after


def _is_opaque(source: str) -> bool:
    words = source.split(maxsplit=1)
    return source.lstrip().startswith("%%") and words[0] not in _PYTHON_BELOW


def _is_automagic(source: str) -> bool:
    """Whether a cell is one line that IPython may take for a magic without `%`.

    `ls`, `ls -l` and `cd /content` are also Python expressions: only the running notebook knows
    whether the names are variables.
    """
    line = source.strip()
    if not _AUTOMAGIC.match(line) or "\n" in line:
        return False
    try:
        tree = ast.parse(line, mode="eval")
    except SyntaxError:
        return not _parses(line)
    return all(isinstance(node, _ONLY_NAMES) for node in ast.walk(tree))


def _goes_on(lines: list[str]) -> bool:
    try:
        for _ in tokenize.generate_tokens(io.StringIO("\n".join([*lines, ""])).readline):
            pass
    except tokenize.TokenError as error:
        return "EOF" in str(error) or "triple-quoted" in str(error)
    except SyntaxError:
        pass
    return False


def _parses(code: str) -> bool:
    try:
        python2.mended(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
