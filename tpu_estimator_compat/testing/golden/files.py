"""The files of golden values: where a test's file is, how it is read, and written whole."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import uuid
from collections.abc import Mapping

from tpu_estimator_compat.testing.golden.values import MOST_ELEMENTS, Leaf

Sections = dict[str, dict[str, Leaf]]
"""The leaves of a test's values by their names; the value without a name is under ""."""

_LONGEST_NAME = 150  # bytes; file systems have a limit of 255
_ODD = re.compile(r"[^\w.,=+@\[\] -]", re.ASCII)
_TOKEN = re.compile(r"""b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*"|\S+""")
_KIND = re.compile(r"\w+(\[[\d,]*\])?( summary)?(?= |$)")
_CONFLICT = re.compile(r"<{7}|={7}|>{7}|\|{7}")

_HEADER = f"""\
# Golden values of {{test}}, by pytest --update-golden.
# A line has a path, the dtype and the shape, then the elements. A large array, of more than
# {MOST_ELEMENTS} elements, has a summary. Of floats: number of finite elements, of NaN elements;
# mean, weighted mean, std, min, max of the finite ones. Of others: a hash. Then elements at equal
# distances.
"""


class DamagedFileError(ValueError):
    """A golden file has a line in another format."""


def file_of(module: pathlib.Path, nodeid: str) -> pathlib.Path:
    """A test's file, `golden/MODULE/TEST.txt` beside `module`: `nodeid` may start at any folder."""
    rest = nodeid.partition("::")[2]
    test, bracket, parameters = rest.partition("[")
    name = _encoded(test.replace("::", ".") + bracket + parameters)
    return module.parent / "golden" / module.stem / f"{name}.txt"


def _encoded(name: str) -> str:
    def hexadecimal(found: re.Match[str]) -> str:
        return "".join(f"%{byte:02x}" for byte in found[0].encode(errors="surrogatepass"))

    encoded = _ODD.sub(hexadecimal, name)
    if len(encoded) <= _LONGEST_NAME:
        return encoded
    digest = hashlib.sha256(encoded.encode()).hexdigest()[:12]
    return f"{encoded[:_LONGEST_NAME]}~{digest}"


def read(path: pathlib.Path) -> Sections:
    """The sections of a file, if there is one; DamagedFileError for a line of another format."""
    if not path.exists():
        return {}
    sections: Sections = {}
    name = ""
    for number, line in enumerate(_lines(path), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]") and " = " not in line:
            name = line[1:-1]
            _refuse(path, number, line, "a name twice" if name in sections else "")
            sections[name] = {}
            continue
        leaf_path, leaf = _parsed(path, number, line)
        section = sections.setdefault(name, {})
        _refuse(path, number, line, "a path twice" if leaf_path in section else "")
        section[leaf_path] = leaf
    return sections


def _lines(path: pathlib.Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"{path} is no text in UTF-8: {error}. {_ADVICE}") from None


_ADVICE = "Repair it, or have it written anew: remove it, and give pytest --update-golden."


def _parsed(path: pathlib.Path, number: int, line: str) -> tuple[str, Leaf]:
    _refuse(path, number, line, "the mark of a merge conflict" if _CONFLICT.match(line) else "")
    leaf_path, equals, text = line.partition(" = ")
    kind = _KIND.match(text)
    _refuse(path, number, line, "" if equals and kind else "not `path = dtype elements`")
    assert kind is not None
    tokens = tuple(_TOKEN.findall(text, kind.end()))
    leaf = Leaf(kind[0], tokens)
    _refuse(path, number, line, _fault(leaf))
    return leaf_path, leaf


def _fault(leaf: Leaf) -> str:
    hashes = leaf.kind.endswith(" summary") and leaf.kind.startswith(("int", "uint"))
    if leaf.kind.startswith(("float", "bfloat", "complex", "int", "uint")) and not hashes:
        try:
            for token in leaf.tokens:
                complex(token)
        except ValueError:
            return f"not a number: {token}"
    if leaf.kind.endswith(" summary") or leaf.kind in ("None", "dict", "list"):
        return ""
    count = 1
    for size in filter(None, leaf.kind.partition("[")[2].rstrip("]").split(",")):
        count *= int(size)
    found = len(leaf.tokens)
    return "" if found == count else f"{found} elements, where its shape has {count}"


def _refuse(path: pathlib.Path, number: int, line: str, fault: str) -> None:
    if fault:
        raise DamagedFileError(f"{path}:{number} is damaged ({fault}): {line[:120]!r}. {_ADVICE}")


def write(path: pathlib.Path, test: str, sections: Mapping[str, Mapping[str, Leaf]]) -> None:
    """Writes a file whole, with its folder: it has the old content or the new one at any time."""
    lines = [_HEADER.format(test=test).rstrip("\n")]
    for name in sorted(sections):  # the one without a name first
        lines += [f"[{name}]"] if name else []
        lines += [f"{leaf_path} = {leaf}" for leaf_path, leaf in sections[name].items()]
    path = pathlib.Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        new.write_text("\n".join([*lines, ""]), encoding="utf-8")
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
