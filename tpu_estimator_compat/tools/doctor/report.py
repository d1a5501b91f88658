"""The findings as text, as JSON, and as markdown that names no machine, person or folder."""

from __future__ import annotations

import dataclasses
import getpass
import json
import os
import pathlib
import platform
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence

from tpu_estimator_compat.tools.doctor.findings import Finding, Status, exit_status, verdict
from tpu_estimator_compat.tools.reports.colors import Color, painted

_WIDTH = 100
_BUCKET = re.compile(r"\b\w+://[^\s'\"),;]+")
_ADDRESS = re.compile(
    r"\b(?!0\.)\d{1,3}(\.\d{1,3}){3}\b(?!\.)|\b[\w-]+(\.[\w-]+)*\.(internal|local|lan)\b"
)
_PATH = re.compile(r"(?<![\w<>])[/~](?!job:|device:)[\w.+@=-]+(?:/[\w.+@=*-]*)*")


_COLORS = {
    Status.OK: Color.GREEN,
    Status.WARNING: Color.YELLOW,
    Status.FAILURE: Color.RED,
}


def table(findings: Sequence[Finding], *, color: bool = False) -> str:
    """A line for each finding, with the advice below it; then the verdict.

    Args:
      findings: the findings.
      color: whether to color the statuses for a terminal.
    """
    statuses, checks = (
        max(len(name) for name in names)
        for names in ([f.status for f in findings], [f.check for f in findings])
    )
    lines = []
    for finding in findings:
        start = f"{finding.status:<{statuses}}  {finding.check:<{checks}}  "
        first, *rest = _wrapped(finding.text, start, len(start))
        status = painted(finding.status, _COLORS.get(finding.status, ""), on=color)
        lines += [status + first.removeprefix(finding.status), *rest]
        lines += _wrapped(finding.advice, " " * len(start) + "-> ", len(start) + 3)
    return "\n".join([*lines, "", verdict(findings)])


def _wrapped(text: str, start: str, indent: int) -> list[str]:
    wrapper = textwrap.TextWrapper(
        _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=" " * indent
    )
    first, *rest = text.splitlines() or [""]
    if not text:
        return []
    wrapper.initial_indent = start
    lines = wrapper.wrap(first)
    wrapper.initial_indent = " " * indent
    return [*lines, *(line for part in rest for line in wrapper.wrap(part.strip()))]


def as_json(findings: Sequence[Finding]) -> str:
    """One object: `findings`, `verdict`, `exit_status`."""
    fields = {
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "verdict": verdict(findings),
        "exit_status": exit_status(findings),
    }
    return json.dumps(fields, indent=1)


def markdown(findings: Sequence[Finding], model_dir: str | None) -> str:
    """A report for an issue, without names of hosts and users, addresses, and paths."""
    rows = ["| | check | what | what to do |", "|---|---|---|---|"]
    for finding in findings:
        cells = [finding.status, finding.check, finding.text, finding.advice]
        rows.append("| " + " | ".join(_cell(private(cell, model_dir)) for cell in cells) + " |")
    system = f"{platform.system()} {platform.machine()}"
    return "\n".join(["# doctor", "", verdict(findings), "", f"{system}.", "", *rows, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def private(text: str, model_dir: str | None) -> str:
    """`text` with placeholders for what tells of the machine and of its user."""
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
    """Names of this host, of those in TF_CONFIG, and of the user."""
    yield platform.node(), "<host>"
    yield platform.node().partition(".")[0], "<host>"
    for address in re.findall(r'"([^"\s]+):\d+"', os.environ.get("TF_CONFIG", "")):
        yield address, "<host>"
    try:
        yield getpass.getuser(), "<user>"
    except (KeyError, OSError):  # a user without a name
        return
