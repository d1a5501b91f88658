"""Compiles a script's step for TPUs or GPUs that this machine lacks, and says whether it fits.

    python -m tpu_estimator_compat preflight --topology v5e:2x4,h100:8 train.py --its_flags

The script runs up to its first train() (or, with --mode, evaluate() or predict()), whose step is
then checked: ops that no TPU has, shapes that depend on data, memory. No data is read, and nothing
is trained. The exit status is 0 if the step compiles and fits on all topologies, 1 if it fails on
one, 2 if the result is unknown or close to the limit.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from typing import Any

from tpu_estimator_compat import environment
from tpu_estimator_compat.command_path import return_working_directory
from tpu_estimator_compat.engine.signals.activity import Activity
from tpu_estimator_compat.old_names.legacy import locating
from tpu_estimator_compat.tools.commands.run import (
    add_report_arguments,
    add_script_arguments,
    check_writable,
    run_script,
)
from tpu_estimator_compat.tools.reports.sources import say

NAME = "preflight"
_UNKNOWN = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topology",
        action="append",
        metavar="NAME",
        help="TPUs such as v5e:2x2, v3:2x2, v5p:2x2x1, or GPUs such as h100:8, a100-80:4, t4:1; "
        "may be repeated; default: v5e:2x2",
    )
    parser.add_argument(
        "--memory-share",
        type=float,
        default=0.75,
        metavar="SHARE",
        help="the share of a GPU's memory that JAX takes; default: 0.75, which is JAX's default",
    )
    _add_extent(parser)
    add_report_arguments(parser)
    add_script_arguments(parser)


def _add_extent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mode",
        choices=["train", "eval", "predict"],
        default="train",
        help="the mode whose step is checked; default: train",
    )
    parser.add_argument(
        "--depth",
        choices=["scan", "lower", "compile"],
        default="compile",
        help="scan: search the graph; lower: also lower it to StableHLO by XLA; compile: also "
        "compile it by the devices' own compiler, which needs for TPUs "
        f"{environment.pip_line('preflight')}, and for GPUs "
        f"{environment.pip_line('preflight-gpu')}; default: compile",
    )
    parser.add_argument(
        "--largest-batch",
        action="store_true",
        help="also search for the largest batch per replica that fits, by compiling several",
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=3600,
        metavar="SECONDS",
        help="the longest time of one compilation; default: 3600",
    )


class _Reached(SystemExit):
    """Ends the script at the checked call, as a SystemExit, which scripts do not catch."""


def run(arguments: argparse.Namespace) -> int:
    return_working_directory()
    locating.check(arguments.script, module=arguments.module)
    from tpu_estimator_compat.tools.preflight import targets

    try:
        environment.require_xla_for_cpu(NAME)
        for name in _topologies(arguments):
            targets.parse(name, arguments.memory_share)
        check_writable(arguments.html)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        say(f"{NAME}: error: {error}", error=True)
        return _UNKNOWN
    # The import takes seconds: errors in the arguments are reported before.
    from tpu_estimator_compat.keras_model import calls

    results: list[Any] = []
    instead = _checker(arguments, results)
    # The script's output must not mix with the JSON.
    redirected = (
        contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext()
    )
    try:
        with redirected, calls.observing(instead):
            run_script(arguments)
    except _Reached as reached:
        if not results:
            say(f"{NAME}: {reached.code}", error=True)
    except SystemExit as left:
        say(f"{NAME}: the script exited with status {left.code}.", error=True)
    if not results:
        call = {"train": "train()", "eval": "evaluate()", "predict": "predict()"}[arguments.mode]
        say(f"{NAME}: no TPUEstimator reached {call}; nothing was checked.", error=True)
        return _UNKNOWN
    shown: int = results[0].document.show(json=arguments.json, html=arguments.html)
    return shown


def _topologies(arguments: argparse.Namespace) -> list[str]:
    given = arguments.topology or ["v5e:2x2"]
    return [name for names in given for name in names.split(",")]


def _checker(arguments: argparse.Namespace, results: list[Any]) -> Callable[..., Any]:
    """The function that runs where the script would train, evaluate or predict."""
    from tpu_estimator_compat.estimator.tpu_estimator import TPUEstimator
    from tpu_estimator_compat.spec import ModeKeys

    modes = {"train": ModeKeys.TRAIN, "evaluate": ModeKeys.EVAL, "predict": ModeKeys.PREDICT}
    wanted = {"train": ModeKeys.TRAIN, "eval": ModeKeys.EVAL, "predict": ModeKeys.PREDICT}

    def instead(call: Any) -> Any:
        if call.name not in modes:
            return call.make()
        estimator, mode, input_fn = call.owner, modes[call.name], call.arguments["input_fn"]
        if mode == wanted[arguments.mode]:
            if not isinstance(estimator, TPUEstimator):
                raise _Reached(
                    f"the script uses {type(estimator).__name__}, which does not run on TPU. Make "
                    "it a TPUEstimator."
                )
            results.append(_check(estimator, mode, input_fn, arguments))
            raise _Reached
        if mode == ModeKeys.TRAIN:
            return estimator  # nothing is trained
        raise _Reached(
            f"the script needs results in mode {mode!r} before it calls {arguments.mode}, and "
            f"preflight runs no steps. Try --mode {mode if mode == 'eval' else 'predict'}."
        )

    return instead


def _check(
    estimator: Any, mode: str, input_fn: Callable[..., Any], arguments: argparse.Namespace
) -> Any:
    with Activity() as tell:
        return estimator.preflight(
            input_fn,
            _topologies(arguments),
            mode,
            depth=arguments.depth,
            largest_batch=arguments.largest_batch,
            time_limit=arguments.time_limit,
            memory_share=arguments.memory_share,
            progress=lambda what, seconds: tell(what),
        )
