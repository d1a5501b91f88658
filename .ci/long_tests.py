"""Writes tests/long_tests.txt: tests that are slow because they take long, and for no other reason.

    long_tests.py LIMIT REPORT...

The reports are pytest's, of runs of the fast tests, and of the tests that the file names today. A
test is named if the median of its times is more than LIMIT seconds. Of a function with parameters
the quickest case stays fast, unless it takes twice as long. The core of parity is always fast.
"""

from __future__ import annotations

import collections
import pathlib
import statistics
import sys
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).parents[1]
FILE = ROOT / "tests" / "long_tests.txt"
ALWAYS_FAST = "tests/parity/test_core.py::"


def node_id(case: ElementTree.Element) -> str:
    """pytest's name of a test in a report."""
    parts = case.get("classname", "").split(".")
    of_file = next(i for i in range(len(parts), 0, -1) if path(parts[:i]).is_file())
    return "::".join(["/".join(parts[:of_file]) + ".py", *parts[of_file:], case.get("name", "")])


def path(parts: list[str]) -> pathlib.Path:
    return ROOT.joinpath(*parts).with_suffix(".py")


def main() -> None:
    limit, *reports = sys.argv[1:]
    times: dict[str, list[float]] = collections.defaultdict(list)
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            times[node_id(case)].append(float(case.get("time", 0)))
    typical = {name: statistics.median(found) for name, found in times.items()}
    functions: dict[str, list[str]] = collections.defaultdict(list)
    for name in typical:
        functions[name.partition("[")[0]].append(name)
    long = {name for name, seconds in typical.items() if seconds > float(limit)}
    for names in functions.values():
        quickest = min(names, key=lambda name: typical[name])
        if len(names) > 1 and long >= set(names) and typical[quickest] <= 2 * float(limit):
            long.remove(quickest)
    named = sorted(name for name in long if not name.startswith(ALWAYS_FAST))
    FILE.write_text("".join(f"{name}\n" for name in named))
    left = sum(typical[name] for name in typical.keys() - set(named))
    print(
        f"{len(named)} tests of {len(typical)}; {left / sum(typical.values()):.0%} of the time left"
    )


if __name__ == "__main__":
    main()
