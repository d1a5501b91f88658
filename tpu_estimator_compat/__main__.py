"""The command line: `python -m tpu_estimator_compat COMMAND ...`, one module per command."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

from tpu_estimator_compat import __version__, environment
from tpu_estimator_compat.old_names.legacy.locating import NoScriptError
from tpu_estimator_compat.tools.commands import COMMANDS
from tpu_estimator_compat.tools.reports.sources import printable, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
      arguments: the words after the program's name; None for this process's own.

    Returns:
      The exit status: 0 if all went well.
    """
    parser = _Parser(prog="python -m tpu_estimator_compat")
    python = f"Python {sys.version.split()[0]}"
    versions = f"tpu_estimator_compat {__version__}, {environment.tensorflow_versions()}, {python}"
    parser.add_argument("--version", action="version", version=versions)
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
        subparser.set_defaults(run=command.run, parser=subparser)
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        said = "the following arguments are required: COMMAND"
        print(f"\n{parser.prog}: error: {said}", file=sys.stderr)
        return 2
    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:
        parsed.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    is_tool = parsed.parser.prog.split()[-1] != "run" or parsed.dry_run
    try:
        with _ending_in_order() if is_tool else contextlib.nullcontext():
            return int(parsed.run(parsed))
    except SystemExit as left:
        if isinstance(left.code, str) and is_tool:
            raise SystemExit(printable(left.code)) from left
        raise
    except NoScriptError as error:
        say(f"{parsed.parser.prog}: error: {error}", error=True)
        return 2
    except ModuleNotFoundError as error:
        if not (said := environment.explained(error)):
            raise
        say(f"{parser.prog}: error: {said}", error=True)
        return 1


@contextlib.contextmanager
def _ending_in_order() -> Iterator[None]:
    """Within, signals that end the process raise SystemExit: a tool leaves nothing half done."""
    is_main = threading.current_thread() is threading.main_thread()
    endings = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in endings if is_main else ():
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        for number in endings if is_main else ():
            signal.signal(number, signal.SIG_DFL)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors name the option or command that was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Prints the error and the word that was probably meant, and exits with status 2."""
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            wrong, known = found[1], re.findall(r"[\w.:-]+", found[2])
        else:
            found = re.search(r"unrecognized arguments: (--?[\w-]+)", message)
            wrong, known = found[1] if found else "", [*self._option_string_actions]
        if close := difflib.get_close_matches(wrong, known, 1):
            message += f". Did you mean {close[0]}?"
        elif wrong.startswith("-") and any(a.dest == "args" for a in self._actions):
            message += ". Put options of the script after SCRIPT."
        super().error(printable(message))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader closed the pipe, as in `scan . | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
