"""Writes the model of a script or a SavedModel as Keras 3 code, with its weights.

    python -m tpu_estimator_compat to-keras train.py --out model.py --its_flags
    python -m tpu_estimator_compat to-keras exports/1543000000 --out model.py

The script runs up to its first train(); nothing is trained, and nothing is written to its folders.
A SavedModel may be of any origin, if it has a graph. Beside model.py goes model.weights.h5. Both
models then run on the same data, the script's first batch or data drawn for the signature. The exit
status is 0 if their outputs, losses and gradients agree, 1 if not, or if something has no form in
Keras: then nothing is written. It is 2 if the source cannot be judged.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import Any

from tpu_estimator_compat.command_path import return_working_directory
from tpu_estimator_compat.engine.files import removal
from tpu_estimator_compat.old_names.legacy import locating
from tpu_estimator_compat.tools.commands.run import (
    add_report_arguments,
    add_script_arguments,
    check_writable,
    run_script,
)
from tpu_estimator_compat.tools.reports.sources import say
from tpu_estimator_compat.tools.to_keras.placing import check_saved_model, targets

NAME = "to-keras"
_UNKNOWN = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_options(parser)
    add_script_arguments(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="FILE", help="the Python file to write, such as model.py; it is required"
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace the file and its weights, if they are there"
    )
    parser.add_argument(
        "--signature",
        metavar="NAME",
        help="the signature of a SavedModel; default: its only one, or serving_default",
    )
    parser.add_argument(
        "--tags",
        metavar="TAGS",
        help="the tags of a SavedModel's graph, with commas; default: serve",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        help="the largest difference of outputs and losses, relative for values above 1; default: "
        "1e-5. A hundred times that for gradients, relative to their largest value",
    )
    add_report_arguments(parser)


def _take_options(arguments: argparse.Namespace) -> None:
    """Takes options that follow SCRIPT directly: from the first of another on, all are its own."""
    options = argparse.ArgumentParser(prog=arguments.parser.prog, add_help=False)
    _add_options(options)
    left = arguments.args
    while left and (action := options._option_string_actions.get(left[0].partition("=")[0])):
        count = 1 if "=" in left[0] or action.nargs == 0 else 2
        options.parse_args(left[:count], arguments)
        del left[:count]
    if left[:1] == ["--"]:
        del left[0]
    if arguments.out is None:
        arguments.parser.error("the following arguments are required: --out")


def run(arguments: argparse.Namespace) -> int:
    _take_options(arguments)
    return_working_directory()
    # The script's output must not mix with the JSON.
    redirected = (
        contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext()
    )
    try:
        _check(arguments)
        with redirected:
            report = _led_out(arguments)
    except (OSError, ValueError) as error:
        say(f"{NAME}: error: {error}", error=True)
        return _UNKNOWN
    shown: int = report.document.show(json=arguments.json, html=arguments.html)
    return shown


def _is_saved_model(arguments: argparse.Namespace) -> bool:
    given = arguments.script
    return not arguments.module and (os.path.isdir(given) or not removal.is_local(given))


def _check(arguments: argparse.Namespace) -> None:
    """Raises OSError or ValueError for arguments that cannot work, before TensorFlow is loaded."""
    if _is_saved_model(arguments):
        check_saved_model(arguments.script)
    else:
        locating.check(arguments.script, module=arguments.module)
        if arguments.signature or arguments.tags:
            raise ValueError(
                f"--signature and --tags are of a SavedModel, and {arguments.script} is a script. "
                "Leave them out."
            )
    if not arguments.tolerance >= 0:
        raise ValueError(f"--tolerance must be 0 or more, got {arguments.tolerance!r}.")
    targets(arguments.out, replace=arguments.replace)
    check_writable(arguments.html)


def _led_out(arguments: argparse.Namespace) -> Any:
    # The import takes seconds.
    from tpu_estimator_compat.tools.to_keras import lead_out, script

    out = os.path.abspath(arguments.out)  # the script may leave the folder
    if _is_saved_model(arguments):
        tags = (arguments.tags or "serve").split(",")
        chosen = arguments.signature, tags, arguments.tolerance
        return lead_out.saved_model(arguments.script, out, *chosen, replace=arguments.replace)
    try:
        found = script.first_training(lambda: run_script(arguments))
    except SystemExit as left:
        raise ValueError(f"the script exited with status {left.code}.") from None
    if found is None:
        raise ValueError("the script ended without a call of train(); nothing was written.")
    return lead_out.estimator(*found, out, arguments.tolerance, replace=arguments.replace)
