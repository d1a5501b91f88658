"""Command: makes each fault in a copy of a tree, and says which of the tree's tests notice.

    python tests/faults/run.py --tree ../before --out results.json

The tests of the fault's room come first, as after a change of that room; where these are green,
those of the rooms that are likely to notice, and then all other fast tests. A test that fails in a
copy without the fault, too, catches nothing. Run it with the interpreter that has all that the
tests want.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import signal
import sys
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

from faults.faults import FAULTS, MISSION, Fault
from faults.running import Outcome, Processes, Stopped, copy_of

TREE = pathlib.Path(__file__).resolve().parents[2]
ROOM, BESIDE, SUITE = "room", "beside", "suite"
STAGES = (ROOM, BESIDE, SUITE)
SUITE_WORKERS = 2
Results = dict[str, dict[str, Any]]


@dataclasses.dataclass
class Trial:
    """Tries faults on a tree.

    Attributes:
      tree: the tree.
      limit: seconds of a run of tests; None for no limit.
      processes: runs them.
      unfit: ids of tests that fail without a fault; they catch nothing.
    """

    tree: pathlib.Path
    limit: float | None
    processes: Processes
    unfit: set[str] = dataclasses.field(default_factory=set)

    def check(self, room: str) -> Outcome:
        """How the tests of a room do without a fault."""
        with copy_of(self.tree, self.processes) as copy:
            return copy.test([room], self.limit)

    def make(self, fault: Fault, stages: list[str]) -> dict[str, Any]:
        """Makes a fault; what each stage said, up to the one that caught it."""
        found: dict[str, Any] = {}
        with copy_of(self.tree, self.processes) as copy:
            copy.change(fault.file, fault.old, fault.new)
            for stage in stages:
                paths = rooms_of(stage, fault, copy.rooms())
                workers = SUITE_WORKERS if stage == SUITE else 0
                outcome = Outcome("green")
                if paths:
                    left_out = sorted(self.unfit)
                    outcome = copy.test(paths, self.limit, workers=workers, but=left_out)
                found[stage] = dataclasses.asdict(outcome)
                if outcome.result != "green":
                    break
        return found

    def find_unfit(self, tests: list[str]) -> set[str]:
        """Those of `tests` that fail without a fault; they are left out from now on."""
        found: set[str] = set()
        with copy_of(self.tree, self.processes) as copy:
            while rest := [test for test in tests if test not in found]:
                outcome = copy.test([test.removeprefix("tests/") for test in rest], self.limit)
                if not outcome.test:
                    break
                found.add(outcome.test)
        self.unfit |= found
        return found


def rooms_of(stage: str, fault: Fault, rooms: list[str]) -> list[str]:
    """Which of `rooms` a stage runs: those that no earlier one has run."""
    if stage == ROOM:
        return [fault.room]
    if stage == BESIDE:
        return list(fault.beside)
    rest = [room for room in rooms if room not in (fault.room, *fault.beside)]
    return sorted(rest, key=lambda room: (room not in MISSION, room))


def caught_by(stages: dict[str, Any]) -> str:
    """The stage that caught a fault; "none", or what else it came to."""
    for stage in STAGES:
        result = stages.get(stage, {}).get("result", "green")
        if result != "green":
            return stage if result == "failed" else f"{stage}: {result}"
    return "none" if SUITE in stages else "no room"


def first_failed(stages: dict[str, Any]) -> str:
    """The test that failed; empty where none did."""
    return "".join(stage["test"] for stage in stages.values())


def line(fault: Fault, result: dict[str, Any]) -> str:
    """A row of the table."""
    stages = result["stages"]
    seconds = sum(stage["seconds"] for stage in stages.values())
    by, test = caught_by(stages), first_failed(stages)
    return f"{fault.name:55} {fault.room:11} {by:12} {seconds:5.0f} s {test}"


def table(results: Results) -> str:
    """The results for people."""
    lines = [line(fault, results[fault.name]) for fault in FAULTS if fault.name in results]
    found = [caught_by(result["stages"]) for result in results.values()]
    counts = ", ".join(f"{found.count(kind)} {kind}" for kind in sorted(set(found)))
    return "\n".join([*lines, f"{len(found)} faults: {counts}"])


def parse(words: list[str] | None) -> argparse.Namespace:
    """The command's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--tree", type=pathlib.Path, default=TREE, help="the checkout; this one by default")
    add(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=[f.name for f in FAULTS],
        help="some faults, in this order",
    )
    add("--jobs", type=int, default=1, metavar="N", help="how many faults at the same time")
    add("--limit", type=float, metavar="SECONDS", help="of one stage")
    add("--out", type=pathlib.Path, help="a JSON file; what it has of other faults stays there")
    add("--rooms-only", action="store_true", help="leave the whole suite out")
    add("--go-on", action="store_true", help="leave out stages that OUT has, and that were green")
    add("--check", action="store_true", help="run each room without a fault, and nothing else")
    return parser.parse_args(words)


def check(trial: Trial, rooms: list[str]) -> int:
    """Runs rooms without a fault; 0 if all are green."""
    status = 0
    for room in rooms:
        outcome = trial.check(room)
        print(f"{room:11} {outcome.result:8} {outcome.seconds:6.0f} s {outcome.test}", flush=True)
        status |= outcome.result != "green"
    return status


def try_all(trial: Trial, arguments: argparse.Namespace) -> int:
    """Makes the faults that are asked for; 0 if all are caught."""
    out, results = arguments.out, {}
    if out and out.exists():
        results = json.loads(out.read_text())
    by_name = {fault.name: fault for fault in FAULTS}
    chosen = [by_name[name] for name in dict.fromkeys(arguments.only or by_name)]
    stages = [ROOM, BESIDE] if arguments.rooms_only else list(STAGES)

    def green(fault: Fault) -> dict[str, Any]:
        known = results.get(fault.name, {}).get("stages", {}) if arguments.go_on else {}
        return {stage: it for stage, it in known.items() if it["result"] == "green"}

    def make(fault: Fault) -> dict[str, Any]:
        known = green(fault)
        return {**known, **trial.make(fault, [stage for stage in stages if stage not in known])}

    def note(fault: Fault, found: dict[str, Any]) -> None:
        described = {"room": fault.room, "file": fault.file, "kind": fault.kind}
        results[fault.name] = {**described, "stages": found}
        print(line(fault, results[fault.name]), flush=True)
        if out:
            out.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")

    left = chosen
    while left:
        make_all(trial, make, left, arguments.jobs, note)
        blamed = {f.name: first_failed(results[f.name]["stages"]) for f in left}
        unfit = trial.find_unfit(sorted({test for test in blamed.values() if test}))
        left = [f for f in left if blamed[f.name] in unfit]
    print("\n" + table({f.name: results[f.name] for f in chosen}))
    caught = [caught_by(results[f.name]["stages"]) in STAGES for f in chosen]
    return 0 if all(caught) else 1


def make_all(
    trial: Trial,
    make: Callable[[Fault], dict[str, Any]],
    faults: list[Fault],
    jobs: int,
    note: Callable[[Fault, dict[str, Any]], None],
) -> None:
    """Makes faults, so many at a time, and calls `note` with what was found of each."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = {pool.submit(make, fault): fault for fault in faults}
        try:
            for task in concurrent.futures.as_completed(tasks):
                note(tasks[task], task.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            trial.processes.stop()
            raise


def main(words: list[str] | None = None) -> int:
    """The command; its exit status."""
    arguments = parse(words)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell has background jobs ignore the first
        signal.signal(number, signal.default_int_handler)
    trial = Trial(arguments.tree.resolve(), arguments.limit, Processes())
    try:
        if arguments.check:
            return check(trial, list(MISSION))
        return try_all(trial, arguments)
    except (KeyboardInterrupt, Stopped):
        trial.processes.stop()
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
