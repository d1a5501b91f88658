"""Compares a script on the original with the same script here, or two earlier runs."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
from collections.abc import Callable, Sequence

from tpu_estimator_compat.engine.step import collectives
from tpu_estimator_compat.environment import SESSION
from tpu_estimator_compat.tools.compare import attribution, evidence, judgement
from tpu_estimator_compat.tools.compare.environment import Unavailable
from tpu_estimator_compat.tools.compare.evidence import Evidence
from tpu_estimator_compat.tools.compare.report import Report, Tolerance, Verdict
from tpu_estimator_compat.tools.compare.runs import Runner, Setting

FACTOR = 20.0
"""A difference up to this multiple of the yardstick's is rounding: its few runs miss larger ones.

Kernels of two releases round differently in every operation; the yardstick disturbs variables only.
In BERT's pretraining, Adam's squares of gradients differed by 12 times the yardstick's difference.
"""

_DISTURBED_RUNS = 2
_NO_ROUNDING = 1e-3
"""The order of sums in threads never causes a larger relative difference of two old runs."""

_DETERMINISM = (
    "The script is not deterministic on the old side. Set tf_random_seed in its RunConfig, and "
    "seeds for Python's and NumPy's random numbers, read files and map in order ("
    "num_parallel_calls, interleave: deterministic=True), and set TF_NUM_INTEROP_THREADS=1."
)


def with_original(
    runner: Runner, python: str | Unavailable, checkpoint: str | None = None
) -> Report:
    """Runs a script on the original and here, and compares the runs.

    The original runs twice, which shows whether it is deterministic. If it is, further runs measure
    rounding: before each step their variables, except zeros, move by one unit in the last place. If
    not, the second run measures rounding. All start from `checkpoint`; if it is None, from the
    original's first. If the runs differ, sessions of this TensorFlow run the script as well, to
    attribute the differences. Without a `python`, they run it in the original's place.
    """
    if isinstance(python, Unavailable):
        instead = (
            "Compared with sessions of this TensorFlow, which run the original's loops, as the "
            f"original cannot run: {python} What TensorFlow changed since 2.15 is not found."
        )
        report = against(runner, Setting(SESSION), SESSION, checkpoint)
        return dataclasses.replace(report, instead=instead)
    old = functools.partial(runner.original, python)
    report = _compared(runner, "original", old, checkpoint)
    if report.first_difference is None:
        return report
    new = evidence.of_run(pathlib.Path(report.new.folder), "new")
    start = checkpoint or report.old.folder
    same = dataclasses.replace(runner, script=runner.new_script or runner.script)
    sessions = functools.partial(same.under, Setting(SESSION))
    return attribution.attributed(report, _compared(same, SESSION, sessions, start, new))


def against(runner: Runner, setting: Setting, name: str, checkpoint: str | None = None) -> Report:
    """Compares a script's run here with its run under `setting`, which is the old side."""
    return _compared(runner, name, functools.partial(runner.under, setting), checkpoint)


def _compared(
    runner: Runner,
    name: str,
    make: Callable[..., Evidence],
    checkpoint: str | None,
    new: Evidence | None = None,
) -> Report:
    """Compares a run here, `new` if it was made, with runs of the old side, which `make` makes."""
    old = make(name, checkpoint)
    start = checkpoint or old.side.folder
    new = new or runner.here("new", start)
    if any(run.side.failure for run in (old, new)):
        return _unknown(old, new, _failures(old, new), _advice(old))
    at_once = judgement.judge(old, new, [], Tolerance("", FACTOR, 0.0))
    if at_once.verdict is Verdict.UNKNOWN:
        return dataclasses.replace(at_once, tolerance=None)
    measure = yardstick(old, make, start)
    if measure.unknown:
        return _unknown(old, new, measure.unknown, measure.notes)
    notes = [*measure.notes, *_remarks(old, new)]
    return judgement.judge(old, new, measure.runs, measure.tolerance, notes)


@dataclasses.dataclass(frozen=True)
class Yardstick:
    """The differences that rounding alone makes; `unknown` says why they cannot be measured.

    Attributes:
      runs: runs of the old side that differ from its first by rounding alone.
      tolerance: the largest differences that count as rounding.
    """

    runs: tuple[Evidence, ...]
    tolerance: Tolerance
    notes: tuple[str, ...] = ()
    unknown: str = ""


def yardstick(old: Evidence, make: Callable[..., Evidence], start: str) -> Yardstick:
    """Measures rounding: repeats a run unchanged, and then with disturbed variables.

    `make` takes a name, the checkpoint or run's folder `start`, and the seed `disturb`.
    """
    name = old.side.name
    again = make(f"{name}, again", start)
    twice = judgement.judge(old, again, [], Tolerance("", 1.0, 0.0))
    if twice.verdict is not Verdict.SAME:
        found = (
            f"The old side ({name}) ran twice with different results. A value may differ by "
            f"{FACTOR:g} times what it differs by between the two, or by 8 units in the last place."
        )
        tolerance = Tolerance(found, FACTOR, 0.0, False)
        return Yardstick((again,), tolerance, (_DETERMINISM,), _chance(old, again))
    disturbed = [
        make(f"{name}, disturbed {seed}", start, disturb=seed)
        for seed in range(1, _DISTURBED_RUNS + 1)
    ]
    found = (
        f"The old side ({name}) ran twice, and was equal bit for bit. In {_DISTURBED_RUNS} further "
        "runs, each element of the trainable variables was moved by one unit in the last place "
        f"before each step, up or down at random. A value may differ by {FACTOR:g} times what it "
        "differs by there, or by 8 units in the last place."
    )
    failures = [run.side.failure for run in disturbed if run.side.failure]
    why = f"the run of {name} failed when disturbed: {failures[0].message}" if failures else ""
    return Yardstick(tuple(disturbed), Tolerance(found, FACTOR, 0.0, True), unknown=why)


def directories(
    old: str | os.PathLike[str], new: str | os.PathLike[str], rtol: float = 1e-4
) -> Report:
    """Compares two earlier runs by their event files and checkpoints.

    Args:
      old, new: model_dirs of the reference run and of the run to judge, or one event file of each.
      rtol: relative difference that counts as rounding; no run measures rounding here.

    Where a training has meanwhile named a newer checkpoint, what it removed is no damage: looks
    again.
    """
    found = f"It was given: a relative difference of {rtol:g} counts as rounding (rtol)."
    while True:
        named = [evidence.names_of_checkpoints(folder) for folder in (old, new)]
        try:
            first = evidence.of_model_dir(pathlib.Path(old), "old")
            second = evidence.of_model_dir(pathlib.Path(new), "new")
            remarks = [*first.remarks, *second.remarks]
            return judgement.judge(first, second, [], Tolerance(found, FACTOR, rtol), remarks)
        except evidence.Damaged:
            if named == [evidence.names_of_checkpoints(folder) for folder in (old, new)]:
                raise


def _unknown(old: Evidence, new: Evidence, why: str, notes: Sequence[str]) -> Report:
    return Report(
        Verdict.UNKNOWN,
        f"could not be judged: {why}",
        old.side,
        new.side,
        old.side.script,
        unknown=why,
        notes=tuple(notes),
    )


def _failures(old: Evidence, new: Evidence) -> str:
    failures = {run.side.name: run.side.failure for run in (old, new) if run.side.failure}
    return "; ".join(f"the {name} run failed: {f.message}" for name, f in failures.items())


def _chance(old: Evidence, again: Evidence) -> str:
    """The difference of two runs of one side, in words, if it is more than rounding; else empty."""
    if again.side.failure:
        return f"the run of {old.side.name} failed when it was repeated"
    found = judgement.judge(old, again, [], Tolerance("", 1.0, _NO_ROUNDING))
    if found.first_difference is None:
        return ""
    return f"two runs of {old.side.name} are not the same: {found.summary}"


def _advice(old: Evidence) -> list[str]:
    failure = old.side.failure
    if failure is None:
        return []
    if "ModuleNotFoundError" in failure.message:
        return ["--original-package NAME installs a package in the original's environment."]
    if any(name in failure.message for name in ("TPU", "use_tpu", *collectives.OP_TYPES)):
        return ["The old side has no TPU for use_tpu=True: give the script use_tpu=False."]
    return []


def _remarks(old: Evidence, new: Evidence) -> list[str]:
    streams = ", ".join(sorted({*old.streams, *new.streams}))
    said = (
        "These operations draw random numbers from a stream of their own, which is not the same on "
        f"both sides: {streams}."
    )
    return [said] if streams else []
