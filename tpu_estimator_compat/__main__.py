"""The command line: `python -m tpu_estimator_compat COMMAND ...`, one module per command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tpu_estimator_compat.commands import COMMANDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
      arguments: the words after the program's name; None for this process's own.

    Returns:
      The exit status: 0 if all went well.
    """
    parser = argparse.ArgumentParser(prog="python -m tpu_estimator_compat")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        summary, _, description = (command.__doc__ or "").partition("\n")
        subparser = commands.add_parser(
            command.NAME,
            help=summary.rstrip("."),
            description=f"{summary}\n{description}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    parsed = parser.parse_args(arguments)
    return int(parsed.run(parsed))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # `scan . | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
