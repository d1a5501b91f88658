"""The results as text, as JSON, and as markdown that names no machine, person or folder."""

from __future__ import annotations

import dataclasses
import getpass
import json
import os
import pathlib
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.table import Table

from tpu_estimator_compat.tools.doctor.check_results import (
    CheckResult,
    Status,
    exit_status,
    verdict,
)
from tpu_estimator_compat.tools.reports.terminal import Sheet, cell, grid

_WIDEST = 100
_BUCKET = re.compile(r"\b\w+://[^\s'\"),;]+")
_ADDRESS = re.compile(
    r"\b(?!0\.)\d{1,3}(\.\d{1,3}){3}\b(?!\.)|\b[\w-]+(\.[\w-]+)*\.(internal|local|lan)\b"
)
_PATH = re.compile(r"(?<![\w<>])[/~](?!job:|device:)[\w.+@=-]+(?:/[\w.+@=*-]*)*")

_STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.FAILURE: "red"}


def table(results: Sequence[CheckResult], width: int | None = None, *, color: bool = False) -> str:
    """A row for each result, with the advice below its text; then the verdict."""
    width = width or min(shutil.get_terminal_size((_WIDEST, 0)).columns, _WIDEST)
    sheet = Sheet(width, color)
    sheet.draw(
        grid(
            (cell(f.status, _STYLES.get(f.status, "")), f.check, Group(cell(f.text), *_advice(f)))
            for f in results
        )
    )
    sheet.blank()
    sheet.add(verdict(results))
    return str(sheet)


def _advice(result: CheckResult) -> list[Table]:
    return [grid([("->", result.advice)], gap=1)] if result.advice else []


def as_json(results: Sequence[CheckResult]) -> str:
    """One object: `findings`, `verdict`, `exit_status`."""
    fields = {
        "findings": [dataclasses.asdict(result) for result in results],
        "verdict": verdict(results),
        "exit_status": exit_status(results),
    }
    return json.dumps(fields, indent=1)


def markdown(results: Sequence[CheckResult], model_dir: str | None) -> str:
    """A report for an issue, without the names of hosts and users, addresses and paths."""
    rows = ["| | check | what | what to do |", "|---|---|---|---|"]
    for result in results:
        cells = [result.status, result.check, result.text, result.advice]
        rows.append("| " + " | ".join(_cell(private(cell, model_dir)) for cell in cells) + " |")
    system = f"{platform.system()} {platform.machine()}"
    return "\n".join(["# doctor", "", verdict(results), "", f"{system}.", "", *rows, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def private(text: str, model_dir: str | None) -> str:
    """`text` with placeholders for names that identify the machine or its user."""
    for place, name in _places(model_dir):
        text = text.replace(place, name)
    text = _BUCKET.sub("<address>", text)
    text = _PATH.sub("<path>", text)
    text = _ADDRESS.sub("<address>", text)
    for word, name in _words():
        text = re.sub(rf"(?<![\w<]){re.escape(word)}(?![\w>])", name, text)
    return text


def _places(model_dir: str | None) -> Iterator[tuple[str, str]]:
    """Folders and their placeholders; inner folders come first."""
    places = {os.path.expanduser("~"): "<home>", tempfile.gettempdir(): "<temporary>"}
    places |= {sys.prefix: "<environment>", str(pathlib.Path(__file__).parents[2]): "<package>"}
    places |= {os.getcwd(): "<folder>"}
    if model_dir:
        places |= {os.path.abspath(os.path.expanduser(model_dir)): "<model_dir>"}
        places |= {model_dir: "<model_dir>"}
    places.pop("/", None)
    return iter(sorted(places.items(), key=lambda item: -len(item[0])))


def _words() -> Iterator[tuple[str, str]]:
    """Names of this host, of the hosts in TF_CONFIG and of the user, with their placeholders."""
    yield platform.node(), "<host>"
    yield platform.node().partition(".")[0], "<host>"
    for address in re.findall(r'"([^"\s]+):\d+"', os.environ.get("TF_CONFIG", "")):
        yield address, "<host>"
    try:
        yield getpass.getuser(), "<user>"
    except (KeyError, OSError):  # a user without a name
        return
