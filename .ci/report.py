"""The end of a run of `.ci/run`: where its time went, and whether the fast tests kept their budget.

    report.py FOLDER [--full]

FOLDER has `stages.tsv` (name, seconds and result of each stage), `reference` (seconds of the
reference work, before and after the fast tests) and pytest's reports, `STAGE.xml`. With --full the
report goes to `.ci/full_record.md` as well. The exit status is 1 if the fast tests took more than
BUDGET times the reference work.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from xml.etree import ElementTree

BUDGET = 30.0
"""The fast tests may take this many times as long as `reference.py`; they take some 18 times."""

SLOWEST = 20
RECORD = pathlib.Path(__file__).with_name("full_record.md")
PACKAGES = ("tensorflow", "keras", "tf-keras", "jax", "jaxlib", "libtpu", "numpy", "pytest")


@dataclasses.dataclass(frozen=True)
class Stage:
    """A stage of `.ci/run`: its name, its wall-clock time in seconds, `ok` or `FAILED`."""

    name: str
    seconds: int
    result: str


@dataclasses.dataclass(frozen=True)
class Test:
    """A test in a report of pytest.

    Attributes:
      seconds: its time.
      reason: why it was skipped; empty if it was not.
    """

    file: str
    name: str
    seconds: float
    outcome: str
    reason: str


def stages(folder: pathlib.Path) -> list[Stage]:
    lines = (folder / "stages.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    return [Stage(name, int(seconds), result) for name, seconds, result in rows]


def tests(report: pathlib.Path) -> Iterator[Test]:
    """The tests of a report in pytest's JUnit format."""
    for case in ElementTree.parse(report).iter("testcase"):
        outcomes = {child.tag for child in case} & {"failure", "error", "skipped"}
        skipped = case.find("skipped")
        yield Test(
            file=case.get("classname", "").replace(".", "/"),
            name=case.get("name", ""),
            seconds=float(case.get("time", 0)),
            outcome=min(outcomes, default="passed"),
            reason="" if skipped is None else skipped.get("message", ""),
        )


def table(*columns: str, rows: list[tuple[object, ...]]) -> list[str]:
    """A table in Markdown."""
    head = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return head + [f"| {' | '.join(map(str, row))} |" for row in rows]


def shares(found: list[Stage]) -> list[str]:
    total = sum(stage.seconds for stage in found)
    rows: list[tuple[object, ...]] = [
        (stage.name, stage.seconds, f"{stage.seconds / max(total, 1):.0%}", stage.result)
        for stage in found
    ]
    return table("stage", "seconds", "share", "result", rows=[*rows, ("all", total, "100%", "")])


def of_tests(stage: str, found: list[Test]) -> list[str]:
    """What a stage's tests gave, by their folder, and the slowest of them."""
    outcomes = collections.Counter(test.outcome for test in found)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    folders: dict[str, list[float]] = collections.defaultdict(list)
    for test in found:
        folders["/".join(test.file.split("/")[:2])].append(test.seconds)
    by_time = sorted(folders.items(), key=lambda item: -sum(item[1]))
    slowest = sorted(found, key=lambda test: -test.seconds)[:SLOWEST]
    return [
        f"\n## {stage}: {counts}\n",
        *table("folder", "tests", "seconds", rows=[(f, len(s), round(sum(s))) for f, s in by_time]),
        "",
        *table("slowest", "seconds", rows=[(f"{t.file} {t.name}", t.seconds) for t in slowest]),
    ]


def left_out(found: list[Test]) -> list[str]:
    """The reasons for which tests did not run, such as a Python that the machine lacks."""
    reasons = collections.Counter(test.reason for test in found if test.reason)
    if not reasons:
        return []
    return ["\n## LEFT OUT\n", *table("tests", "why", rows=[(n, r) for r, n in reasons.items()])]


def versions() -> str:
    found = [f"Python {platform.python_version()}"]
    found += [f"{name} {metadata.version(name)}" for name in PACKAGES]
    return ", ".join(found)


def commit() -> str:
    """The commit that is checked out, and whether files differ from it."""
    git = ["git", "log", "-1", "--format=%H of %cs"]
    name = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    changed = ["git", "status", "--porcelain", "--untracked-files=no"]
    dirty = subprocess.run(changed, capture_output=True, text=True, check=True).stdout.strip()
    return f"{name}{', with changes' if dirty else ''}"


def over_budget(folder: pathlib.Path, found: list[Stage]) -> tuple[bool, str]:
    """Whether the fast tests took too long, and a sentence that says how long they took."""
    reference = statistics.mean(map(float, (folder / "reference").read_text().split()))
    [seconds] = [stage.seconds for stage in found if stage.name == "tests"]
    ratio = seconds / reference
    words = (
        f"The fast tests took {ratio:.1f} times as long as the reference work "
        f"({seconds} s and {reference:.1f} s); {BUDGET:.0f} times are allowed."
    )
    return ratio > BUDGET, words


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    found = stages(folder)
    lines = shares(found)
    late = False
    if (folder / "reference").exists() and any(stage.name == "tests" for stage in found):
        late, words = over_budget(folder, found)
        lines += ["", words]
    reports = {stage.name: folder / f"{stage.name}.xml" for stage in found}
    ran = {name: list(tests(report)) for name, report in reports.items() if report.exists()}
    for name, of_stage in ran.items():
        lines += of_tests(name, of_stage)
    lines += left_out([test for of_stage in ran.values() for test in of_stage])
    print("\n" + "\n".join(lines))
    if "--full" in sys.argv[2:]:
        head = ["# The last full run", "", f"Commit {commit()}.", f"{versions()}.", ""]
        RECORD.write_text("\n".join([*head, *lines]) + "\n")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
