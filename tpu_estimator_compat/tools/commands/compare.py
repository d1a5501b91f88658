"""Runs a script on TensorFlow's own estimators and here, and compares the two trainings.

    python -m tpu_estimator_compat compare --steps 20 train.py --its_flags
    python -m tpu_estimator_compat compare --dirs old_model new_model

Both sides start from one checkpoint, TensorFlow's first, in model_dirs of their own. Losses,
variables, evaluations, predictions and the names in written files are compared. With --dirs, SCRIPT
and the argument after it are the model_dirs of an old and a new run, and nothing is run. The exit
status is 0 if all is equal or differs only by rounding, 1 if it differs, 2 if the runs cannot be
judged.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator

from tpu_estimator_compat.command_path import return_working_directory
from tpu_estimator_compat.old_names.legacy import locating
from tpu_estimator_compat.old_names.legacy.notebooks.cells import is_notebook
from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.commands.run import add_script_arguments, check_writable
from tpu_estimator_compat.tools.compare import environment
from tpu_estimator_compat.tools.compare.report import Report
from tpu_estimator_compat.tools.reports.sources import say

NAME = "compare"
_UNKNOWN = 2
_DEFAULT = "2.15"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_sides(parser)
    _add_extent(parser)
    _add_results(parser)
    add_script_arguments(parser)


def _add_sides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--original",
        choices=sorted(environment.RELEASES),
        default=_DEFAULT,
        help="the release of TensorFlow with the original, whose environment is made once, in the "
        "cache directory; default: 2.15, or sessions of this TensorFlow where that cannot be made",
    )
    parser.add_argument(
        "--original-python",
        metavar="PATH",
        help="the Python of an environment of your own that has the original",
    )
    parser.add_argument(
        "--original-package",
        action="append",
        default=[],
        metavar="NAME",
        help="a further package for pip to install in the original's environment; may be repeated",
    )
    parser.add_argument(
        "--against",
        metavar="SETTING",
        help="compare with a run here, not with the original, under a setting: tf or jax, the "
        "runtime under use_tpu=True; session, the original's loops; jit, steps compiled by XLA; "
        "replicas=N, N logical CPUs",
    )
    parser.add_argument(
        "--new-script",
        metavar="PATH",
        help="the script to run here, such as a migrated one, while the original runs SCRIPT; both "
        "get the same arguments",
    )


def _add_extent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--steps",
        type=_positive,
        default=50,
        metavar="N",
        help="training steps to run; default: 50",
    )
    parser.add_argument(
        "--first-step",
        action="store_true",
        help="also compare activations and gradients of the first step, and name the first "
        "operation that differs, with its line",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="PATH",
        help="the checkpoint from which both sides start; default: the original's first",
    )
    parser.add_argument(
        "--own-folder",
        action="append",
        default=[],
        metavar="FLAG",
        help="a flag of the script, besides model_dir, output_dir and job_dir, that names a folder "
        "to write to: each side gets a folder of its own; may be repeated",
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=3600,
        metavar="SECONDS",
        help="the longest time of one run; default: 3600",
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep", metavar="FOLDER", help="keep the files of the runs in this new folder"
    )
    parser.add_argument(
        "--dirs", action="store_true", help="compare two existing model_dirs, and run nothing"
    )
    parser.add_argument(
        "--rtol",
        type=float,
        default=1e-4,
        help="with --dirs: the relative difference that counts as rounding; default: 1e-4",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object, not a table")
    parser.add_argument(
        "--html", metavar="FILE", help="also write the report as an HTML page, with curves"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a positive number of steps, got {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    try:
        check_writable(arguments.html)
        report = _of_dirs(arguments) if arguments.dirs else _of_script(arguments)
    except (environment.Unavailable, OSError, ValueError) as error:
        say(f"python -m tpu_estimator_compat {NAME}: error: {error}", error=True)
        return _UNKNOWN
    from tpu_estimator_compat.tools.compare.showing import shown

    return shown(report).show(json=arguments.json, html=arguments.html)


def _of_dirs(arguments: argparse.Namespace) -> Report:
    if len(arguments.args) != 1:
        given = " ".join([arguments.script, *arguments.args])
        raise ValueError(f"--dirs takes two folders, the old and the new one; got: {given}")
    if not arguments.rtol >= 0:
        raise ValueError(f"--rtol must be 0 or more, got {arguments.rtol!r}.")
    for path in (arguments.script, arguments.args[0]):
        _check_run(path)
    # The import takes seconds: errors in the arguments are reported before.
    from tpu_estimator_compat.tools.compare import comparing

    return comparing.directories(arguments.script, arguments.args[0], arguments.rtol)


def _check_run(path: str) -> None:
    """Raises ValueError for a path that is no run, by file names alone."""
    if not os.path.exists(path):
        raise ValueError(f"{path} does not exist. Give a model_dir, or an event file.")
    names = (name for _, _, files in os.walk(path) for name in files)
    if os.path.isdir(path) and not any(
        ".tfevents." in name or name == "checkpoint" or name.endswith(".index") for name in names
    ):
        raise ValueError(
            f"{path} has neither event files nor a checkpoint. Give the directory that was the "
            "model_dir of a training."
        )


def _check_arguments(arguments: argparse.Namespace) -> None:
    """Raises ValueError for arguments that cannot work, before anything is imported or made."""
    for script in (arguments.script, arguments.new_script or ""):
        if is_notebook(script):
            raise ValueError(
                f"{script} is a notebook, which the original's environment cannot run. Make it a "
                f"script: jupyter nbconvert --to script {script}"
            )
    if arguments.checkpoint and not os.path.exists(f"{arguments.checkpoint}.index"):
        raise ValueError(
            f"--checkpoint {arguments.checkpoint}: there is no file {arguments.checkpoint}.index. "
            "Give the path of a checkpoint without its last extension, such as DIR/model.ckpt-100."
        )
    if arguments.new_script and not os.path.isfile(arguments.new_script):
        raise ValueError(f"--new-script {arguments.new_script}: there is no such file.")
    if arguments.against and arguments.new_script:
        raise ValueError(
            "--new-script names the script for this package, while the original runs the other; "
            "with --against, both sides run with this package. Leave one of the two options out."
        )
    if arguments.keep and os.path.exists(arguments.keep):
        raise ValueError(
            f"--keep {arguments.keep}: this folder or file already exists. Name a new one, or "
            "remove it."
        )


def _of_script(arguments: argparse.Namespace) -> Report:
    return_working_directory()
    locating.check(arguments.script, module=arguments.module)
    _check_arguments(arguments)
    from tpu_estimator_compat.tools.compare import runs

    setting = runs.Setting.parse(arguments.against) if arguments.against else None
    original = "" if setting else _original(arguments)
    # The import takes seconds: errors in the arguments are reported before.
    from tpu_estimator_compat.tools.compare import comparing

    script = runs.Script(
        arguments.script,
        tuple(arguments.args),
        arguments.module,
        tuple(arguments.legacy_package),
        arguments.numpy_legacy,
        arguments.behavior,
        (*runs.Script.own_folders, *arguments.own_folder),
        tuple(arguments.modern_package),
    )
    with _folder(arguments.keep) as folder:
        new_script = None
        if arguments.new_script:
            new_script = dataclasses.replace(script, name=arguments.new_script, module=False)
        runner = runs.Runner(
            script,
            folder,
            arguments.steps,
            arguments.time_limit,
            new_script,
            arguments.first_step,
        )
        if setting is not None:
            report = comparing.against(runner, setting, arguments.against, arguments.checkpoint)
        else:
            report = comparing.with_original(runner, original, arguments.checkpoint)
    return report if arguments.keep else report.without_folders()


def _original(arguments: argparse.Namespace) -> str | environment.Unavailable:
    """The original's Python, or why sessions take its place, which they do for the default."""
    if arguments.original_python:
        return environment.check_interpreter(arguments.original_python, "--original-python")
    release = environment.RELEASES[arguments.original]
    try:
        return environment.find_or_make(release, arguments.original_package)
    except environment.Unavailable as error:
        if arguments.original != _DEFAULT:
            raise
        return error


@contextlib.contextmanager
def _folder(keep: str | None) -> Iterator[pathlib.Path]:
    """A new folder for the runs: `keep`, or a temporary one, which is removed afterwards."""
    if keep:
        os.makedirs(keep)
        yield pathlib.Path(keep).absolute()
        return
    with child_process.temporary_folder("compare_") as made:
        yield made
