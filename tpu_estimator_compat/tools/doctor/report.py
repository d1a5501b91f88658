"""The results of checks: as a document, and as markdown that names no machine, person or folder."""

from __future__ import annotations

import collections
import dataclasses
import getpass
import os
import pathlib
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence

from tpu_estimator_compat.tools.reports.document import (
    Cell,
    Document,
    Lines,
    Span,
    Summary,
    Table,
    Tone,
    Verdict,
)

_BUCKET = re.compile(r"\b\w+://[^\s'\"),;]+")
_ADDRESS = re.compile(
    r"\b(?!0\.)\d{1,3}(\.\d{1,3}){3}\b(?!\.)|\b[\w-]+(\.[\w-]+)*\.(internal|local|lan)\b"
)
_PATH = re.compile(r"(?<![\w<>])[/~](?!job:|device:)[\w.+@=-]+(?:/[\w.+@=*-]*)*")


class Status(Verdict):
    FIGURE = "figure", 0, Tone.PLAIN
    NOT_MADE = "not made", 0, Tone.PLAIN
    OK = "ok", 0, Tone.GOOD
    WARNING = "warning", 0, Tone.WARN
    FAILURE = "failure", 1, Tone.BAD


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """The result of a check, such as "versions": one line of the report, and a remedy."""

    check: str
    status: Status
    text: str
    advice: str = ""


def document(results: Sequence[CheckResult]) -> Document:
    """A row for each result; the JSON's object has `findings`, `verdict` and `exit_status`."""
    status = Status.worst(result.status for result in results)
    counts = collections.Counter(result.status for result in results)
    shown = (Status.OK, Status.WARNING, Status.FAILURE, Status.NOT_MADE)
    told = ", ".join(f"{counts[status]} {status.value}" for status in shown if counts[status])
    failed = status is Status.FAILURE
    said = "do not trust this installation yet" if failed else "no check failed"
    summary = f"{said}: {told}."
    data = {
        "findings": results,
        "verdict": f"Doctor: {summary}",
        "exit_status": status.exit_code,
    }
    return Document("Doctor", status, [Table(list(map(_row, results))), Summary(summary)], data)


def _row(result: CheckResult) -> tuple[Cell, ...]:
    status = Span(result.status.value, result.status.tone)
    text: Cell = result.text
    if result.advice:
        text = Lines([text, Table([("->", Lines(result.advice.splitlines()))], gap=1)])
    return status, result.check, text


def markdown(results: Sequence[CheckResult], model_dir: str | None) -> str:
    """A report for an issue, without the names of hosts and users, addresses and paths."""
    rows = ["| | check | what | what to do |", "|---|---|---|---|"]
    for result in results:
        cells = [result.status.value, result.check, result.text, result.advice]
        rows.append("| " + " | ".join(_cell(private(cell, model_dir)) for cell in cells) + " |")
    system = f"{platform.system()} {platform.machine()}"
    return "\n".join(
        ["# doctor", "", document(results).data["verdict"], "", f"{system}.", "", *rows, ""]
    )


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
