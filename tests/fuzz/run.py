"""Draws programs, runs them on both sides, and tells what differs.

What differs in the same way in sessions of this TensorFlow, where the original's own loops run, is
said to be by TensorFlow; code that sessions share with ours can be it, too.


python tests/fuzz/run.py --seeds 0-200
python tests/fuzz/run.py --seeds 17 --shrink
python tests/fuzz/run.py --choices input=one_shot v2=on,off
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import re
import sys
import tempfile
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

if __name__ == "__main__":
    sys.path[:0] = [str(pathlib.Path(__file__).parents[depth]) for depth in (2, 1)]

from support.forks import PLAIN_KERNELS, Forks
from support.original import find_or_make
from support.sides import running

from fuzz import comparison
from fuzz.programs.choices import Choices, consistent, drawn, simplest, told

Programs = dict[str, Choices]


class Sides:
    def __init__(self, folder: pathlib.Path):
        modules = ("tensorflow", "tensorflow.compat.v1")
        self._original = Forks(find_or_make(), modules, PLAIN_KERNELS)
        self._ours = Forks(sys.executable, running.MODULES, PLAIN_KERNELS)
        self._folder, self._runs = folder, 0

    def _side(self, name: str, programs: Programs) -> running.Side:
        forks = self._original if name == "original" else self._ours
        return running.Side(
            "original" if name == "original" else "ours",
            forks,
            "fuzz",
            {"programs": programs},
            running.IN_SESSIONS if name == "sessions" else {},
            options=comparison.OPTIONS,
        )

    def _next(self) -> pathlib.Path:
        self._runs += 1
        return self._folder / f"run-{self._runs}"

    def chances(self, programs: Programs) -> set[str]:
        out, side = self._next(), self._side("original", programs)
        folders = [out / "one", out / "other"]
        for folder in folders:
            side.run(programs, folder)
        return {
            name
            for name in programs
            if comparison.differ(*(running.answer(folder, name) for folder in folders))
        }

    def causes(self, found: dict[str, list[str]], differing: Programs) -> dict[str, str]:
        """Of programs that differ, what makes the difference, if this package does not."""
        chances = self.chances(differing)
        of_sessions = self.differences(differing, "sessions")
        by_tensorflow = {name for name in differing if {*found[name]} <= {*of_sessions[name]}}
        return {
            **dict.fromkeys(by_tensorflow, "by TensorFlow"),
            **dict.fromkeys(chances, "left to chance by the original"),
        }

    def original(self, programs: Programs) -> dict[str, Any]:
        out = self._next()
        self._side("original", programs).run(programs, out)
        return {name: running.answer(out, name) for name in programs}

    def differences(self, programs: Programs, new: str = "ours") -> dict[str, list[str]]:
        out = self._next()
        running.run_together(
            *[(self._side(side, programs), programs, out / side) for side in ("original", new)]
        )
        return {
            name: comparison.unexpected(
                programs[name],
                running.answer(out / "original", name),
                running.answer(out / new, name),
            )
            for name in programs
        }


def kinds(differences: list[str]) -> list[str]:
    """Short classes of differences: where, of what, and on which sides."""
    found: dict[str, str] = {}
    for line in differences:
        place, _, rest = line.partition(": ")
        sign = rest[:1] if rest[:1] in "+-" else "~"
        if place.startswith("checkpoints") and ".variables" in place:
            place = "values of checkpoints"
        if place in ("calls", "log"):
            words = re.sub(r"-?\d[\d.e+-]*", "#", rest.lstrip("+-["))
            place += " " + (words.split(",")[0] if place == "calls" else words[:48])
        place = re.sub(r"\d+", "#", place)
        found[place] = "".join(sorted({*found.get(place, ""), sign}))
    return [f"{place} {signs}" for place, signs in found.items()]


def shrunk(sides: Sides, name: str, choices: Choices) -> tuple[Choices, list[str]]:
    wanted = kinds(sides.differences({name: choices})[name])[:1]

    def still(differences: list[str]) -> bool:
        return bool({*wanted} & {*kinds(differences)})

    kept, size = told(consistent(choices)), 8
    while wanted and kept and size <= 32:
        names = list(kept)
        size = min(size, len(names))
        chunks = [names[i::size] for i in range(size)]
        tries = {f"{i}-of-{size}": _without(kept, chunk) for i, chunk in enumerate(chunks)}
        found = sides.differences(tries)
        free = [chunk for chunk, each in zip(chunks, found.values(), strict=True) if still(each)]
        together = _without(kept, [each for chunk in free for each in chunk])
        if len(free) > 1 and not still(sides.differences({"together": together})["together"]):
            together = _without(kept, free[0])
        if not free and size == len(names):
            break
        size = size if free else 2 * size
        kept = told(together) if free else kept
    return kept, sides.differences({"least": {**simplest(), **kept}})["least"]


def _without(kept: Choices, chunk: list[str]) -> Choices:
    return {**simplest(), **{name: each for name, each in kept.items() if name not in chunk}}


def seeds_of(words: list[str]) -> list[int]:
    """`0-3 7` is 0, 1, 2, 3 and 7."""
    found = []
    for word in words:
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def chosen(words: list[str]) -> Programs:
    given = [word.partition("=") for word in words]
    combined = itertools.product(*(values.split(",") for _, _, values in given))
    found = {}
    for values in combined:
        choices = {name: value for (name, _, _), value in zip(given, values, strict=True)}
        named = [f"{name}={value}" for name, value in choices.items() if value != simplest()[name]]
        found["+".join(named) or "simplest"] = {**simplest(), **choices}
    return found


def described(choices: Choices) -> str:
    return " ".join(f"{name}={value}" for name, value in told(consistent(choices)).items())


def tell(found: dict[str, list[str]], causes: dict[str, str], verbose: bool) -> None:
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for name, differences in found.items():
        how = "; ".join(kinds(differences)[:4]) or "same"
        print(f"{name}: {causes[name] + ': ' if name in causes else ''}{how}")
        for line in differences if verbose else []:
            print(f"    {line}")
        for kind in kinds(differences) if name not in causes else []:
            groups[kind].append(name.removeprefix("seed-"))
    same = sum(not each for each in found.values())
    counts = [f"{number} {cause}" for cause, number in collections.Counter(causes.values()).items()]
    print("; ".join([f"\n{same} of {len(found)} the same", *counts]))
    for kind, names in sorted(groups.items(), key=lambda group: -len(group[1])):
        print(f"{len(names):4} {kind}: {' '.join(names[:15])}")


def keep(sides: Sides) -> None:
    programs = {name: drawn(int(name.removeprefix("seed-"))) for name in comparison.KEPT}
    answers = json.dumps(sides.original(programs), separators=(",", ":"))
    comparison.ANSWERS.write_text(answers + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="*", default=[], help="such as 0-200")
    parser.add_argument(
        "--choices", nargs="*", help="of programs, such as input=one_shot v2=on,off"
    )
    parser.add_argument("--shrink", action="store_true", help="look for simpler programs")
    parser.add_argument("--verbose", action="store_true", help="tell all differences")
    parser.add_argument("--keep", action="store_true", help="write answers.json anew")
    parser.add_argument("--out", type=pathlib.Path, help="a folder for what was observed")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    programs = {f"seed-{seed}": drawn(seed) for seed in seeds_of(given.seeds)}
    if given.choices is not None:
        programs.update(chosen(given.choices))
    folder = (given.out or pathlib.Path(tempfile.mkdtemp(prefix="fuzz_"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    print(f"what was observed is in {folder}")
    sides = Sides(folder)
    if given.keep:
        keep(sides)
    found = sides.differences(programs)
    differing = {name: programs[name] for name in found if found[name]}
    causes = sides.causes(found, differing) if differing else {}
    tell(found, causes, given.verbose)
    for name in differing if given.shrink else []:
        if name not in causes:
            kept, differences = shrunk(sides, name, programs[name])
            print(f"\n{name} shrunk: {described(kept)}", *differences[:8], sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
