"""Checks whether this machine's installation can be trusted, before any code of yours runs.

    python -m tpu_estimator_compat doctor --model_dir gs://bucket/runs --report doctor.md

The checks are of versions, devices, steps of small models on each device, sums over devices, a
checkpoint, and the caches. A probe that hangs or dies counts as a failure. The exit status is 0 if
no check failed, 1 if one failed, 2 if the checks could not be made.
"""

from __future__ import annotations

import argparse
import pathlib

from tpu_estimator_compat.tools.reports.sources import say

NAME = "doctor"
_UNKNOWN = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model_dir",
        "--model-dir",
        metavar="DIR",
        help="a folder or a bucket for a trial checkpoint, which is deleted again; default: a "
        "temporary folder",
    )
    parser.add_argument(
        "--time_limit",
        "--time-limit",
        type=_seconds,
        default=120.0,
        metavar="SECONDS",
        help="the longest time of one probe; there are about ten; default: 120",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object, not a table")
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="also write the report as markdown for an issue, without host names, user names and "
        "paths",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got {text!r}")
    return seconds


def run(arguments: argparse.Namespace) -> int:
    from tpu_estimator_compat.tools.doctor import report
    from tpu_estimator_compat.tools.doctor.examination import Examination

    try:
        if arguments.model_dir is not None and not arguments.model_dir.strip():
            raise ValueError("--model_dir is empty. Give a folder or a bucket, or leave it out.")
        if arguments.report:
            pathlib.Path(arguments.report).touch()  # before the checks take their minutes
        found = list(Examination(arguments.model_dir, arguments.time_limit).results())
        if arguments.report:
            text = report.markdown(found, arguments.model_dir)
            pathlib.Path(arguments.report).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        say(f"python -m tpu_estimator_compat {NAME}: error: {error}", error=True)
        return _UNKNOWN
    return report.document(found).show(json=arguments.json)
