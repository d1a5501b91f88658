"""Draws programs, runs them on both sides, and tells what differs.

    python tests/fuzz/run.py --seeds 0-200
    python tests/fuzz/run.py --seeds 17 --shrink
    python tests/fuzz/run.py --choices input=one_shot v2=off
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import re
import sys
import tempfile
import types
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

if __name__ == "__main__":
    sys.path[:0] = [str(pathlib.Path(__file__).parents[depth]) for depth in (2, 1)]

from support.forks import PLAIN_KERNELS, Forks
from support.original import find_or_make
from support.sides import comparing, running

from fuzz import comparison
from fuzz.programs.choices import Choices, consistent, drawn, simplest, told

Programs = dict[str, Choices]


class Sides:
    """Both sides, for as many runs as wanted."""

    def __init__(self, folder: pathlib.Path):
        factory: Any = types.SimpleNamespace(getbasetemp=lambda: folder)
        modules = ("tensorflow", "tensorflow.compat.v1")
        self._original = Forks(factory, find_or_make(), modules, PLAIN_KERNELS)
        self._ours = Forks(factory, sys.executable, running.MODULES, PLAIN_KERNELS)
        self._folder, self._runs = folder, 0

    def differences(self, programs: Programs) -> dict[str, list[str]]:
        """What differs, by program."""
        self._runs += 1
        out = self._folder / f"run-{self._runs}"
        settings = {"programs": programs}
        sides = {
            name: running.Side(name, forks, "fuzz", settings, options=comparison.OPTIONS)
            for name, forks in (("original", self._original), ("ours", self._ours))
        }
        running.run_together(*[(side, programs, out / name) for name, side in sides.items()])
        return {
            name: comparison.unexpected(
                programs[name],
                running.answer(out / "original", name),
                running.answer(out / "ours", name),
            )
            for name in programs
        }


def kinds(differences: list[str]) -> list[str]:
    """Short classes of differences, without numbers."""
    found = [re.sub(r"\d[\d.e+-]*", "#", line)[:110] for line in differences]
    return list(dict.fromkeys(found))


def shrunk(sides: Sides, name: str, choices: Choices) -> tuple[Choices, list[str]]:
    """The simplest program that still differs in the same way: a common kind of difference."""
    first = kinds(sides.differences({name: choices})[name])
    wanted = set(first[:1])
    kept, least = told(choices), []
    while kept:
        tries = {
            f"{name}-without-{each}": {**simplest(), **{k: v for k, v in kept.items() if k != each}}
            for each in kept
        }
        found = sides.differences(tries)
        superfluous = [
            each for each in kept if wanted & set(kinds(found[f"{name}-without-{each}"]))
        ]
        if not superfluous:
            break
        kept, least = _without(sides, name, kept, superfluous, wanted)
    return kept, least


def _without(
    sides: Sides, name: str, kept: Choices, superfluous: list[str], wanted: set[str]
) -> tuple[Choices, list[str]]:
    """Leaves out as many of them as possible at once."""
    size = len(superfluous)
    while size > 1:
        chunks = [superfluous[i : i + size] for i in range(0, len(superfluous), size)]
        tries = {
            f"{name}-{i}-of-{size}": {**simplest(), **{k: v for k, v in kept.items() if k not in chunk}}
            for i, chunk in enumerate(chunks)
        }
        found = sides.differences(tries)
        for chunk, (tried, differences) in zip(chunks, found.items(), strict=True):
            if wanted & set(kinds(differences)):
                return {k: v for k, v in kept.items() if k not in chunk}, differences
        size = (size + 1) // 2
    return {k: v for k, v in kept.items() if k != superfluous[0]}, []


def seeds_of(words: list[str]) -> list[int]:
    """`0-3 7` is 0, 1, 2, 3 and 7."""
    found = []
    for word in words:
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def described(choices: Choices) -> str:
    return " ".join(f"{name}={value}" for name, value in told(consistent(choices)).items())


def tell(found: dict[str, list[str]], verbose: bool) -> None:
    """A line a program, then kinds of differences with their programs."""
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for name, differences in found.items():
        print(f"{name}: {'same' if not differences else kinds(differences)[0]}")
        for line in differences if verbose else []:
            print(f"    {line}")
        for kind in kinds(differences):
            groups[kind].append(name)
    print(f"\n{sum(not each for each in found.values())} of {len(found)} the same")
    for kind, names in sorted(groups.items(), key=lambda group: -len(group[1])):
        print(f"{len(names):4} {kind}\n     {' '.join(names[:12])}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="*", default=[], help="such as 0-200")
    parser.add_argument("--choices", nargs="*", help="of one program, such as input=one_shot")
    parser.add_argument("--shrink", action="store_true", help="look for simpler programs")
    parser.add_argument("--verbose", action="store_true", help="tell all differences")
    parser.add_argument("--out", type=pathlib.Path, help="a folder for what was observed")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    programs = {f"seed-{seed}": drawn(seed) for seed in seeds_of(given.seeds)}
    if given.choices is not None:
        programs["chosen"] = dict(each.split("=") for each in given.choices)
    folder = given.out or pathlib.Path(tempfile.mkdtemp(prefix="fuzz_"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"what was observed is in {folder}")
    sides = Sides(folder)
    found = sides.differences(programs)
    tell(found, given.verbose)
    for name in found if given.shrink else []:
        if found[name]:
            kept, differences = shrunk(sides, name, programs[name])
            print(f"\n{name} shrunk: {described(kept)}", *differences[:8], sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
