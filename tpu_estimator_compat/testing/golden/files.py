"""The files of golden values, in JSON: where a test's file is; it is read and written whole."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import uuid
from collections.abc import Mapping
from typing import Any

from tpu_estimator_compat.engine.files import removal

Sections = dict[str, dict[str, list[Any]]]
"""The leaves of a test's values by their names; the value without a name is under ""."""

_LONGEST_NAME = 150  # bytes; file systems have a limit of 255
_ODD = re.compile(r"[^\w.,=+@\[\] -]", re.ASCII)
_ADVICE = "Repair it, or have it written anew: remove it, and give pytest --update-golden."


def file_of(module: pathlib.Path, nodeid: str) -> pathlib.Path:
    """A test's file, `golden/MODULE/TEST.json` beside `module`; `nodeid` starts at any folder."""
    rest = nodeid.partition("::")[2]
    test, bracket, parameters = rest.partition("[")
    name = _encoded(test.replace("::", ".") + bracket + parameters)
    return module.parent / "golden" / module.stem / f"{name}.json"


def _encoded(name: str) -> str:
    def hexadecimal(found: re.Match[str]) -> str:
        return "".join(f"%{byte:02x}" for byte in found[0].encode(errors="surrogatepass"))

    encoded = _ODD.sub(hexadecimal, name)
    if len(encoded) <= _LONGEST_NAME:
        return encoded
    digest = hashlib.sha256(encoded.encode()).hexdigest()[:12]
    return f"{encoded[:_LONGEST_NAME]}~{digest}"


def read(path: pathlib.Path) -> Sections:
    """The sections of a file, if there is one; ValueError if it cannot be read."""
    if not path.exists():
        return {}
    try:
        found: Sections = json.loads(path.read_text("utf-8"), object_pairs_hook=_with_keys_once)
    except ValueError as error:  # of JSON, UTF-8, or a key
        raise ValueError(f"{path} is damaged: {error}. {_ADVICE}") from None
    return found


def _with_keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"one of these is there twice: {[key for key, _ in pairs]}")
    return found


def write(path: pathlib.Path, sections: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes a file whole, with its folder: it has the old content or the new one at any time."""
    path = pathlib.Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new-{uuid.uuid4().hex[:8]}")
    try:
        new.write_text(_text(sections), encoding="utf-8")
        os.replace(new, path)
    finally:
        removal.remove(new, "unfinished")


def _text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """JSON with a leaf per line, for reviews of what has changed."""
    parts = []
    for name in sorted(sections):  # the one without a name first
        leaves = [
            f"  {json.dumps(path)}: {json.dumps(leaf)}" for path, leaf in sections[name].items()
        ]
        parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(leaves) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"
