"""Runs a script unchanged on today's TensorFlow, with the names that TensorFlow dropped.

    python -m tpu_estimator_compat run train.py --train_steps=20
    python -m tpu_estimator_compat run --runtime jax -m package.train --its_flags

The script, or with -m the module, runs as `__main__` with the arguments that follow it. Names such
as `tensorflow.contrib` and `tf.estimator` work in the script, in modules beside it, in its package,
in modules on PYTHONPATH that belong to no installed package, in installed packages that use such
names, and in those given by --legacy-package, also in children that multiprocessing starts. All
other code sees TensorFlow as it is. The exit status is 0 if the script ends without an error, 1 if
it raises one, 2 if there is no such script, 130 after Ctrl-C; a script that exits with a status of
its own keeps it.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import os
import signal
import sys
import traceback
import types
from collections.abc import Iterator

from tpu_estimator_compat.environment import PROFILE_VARIABLE, RUNTIME_VARIABLE, RUNTIMES
from tpu_estimator_compat.old_names.legacy import locating
from tpu_estimator_compat.tools import script_folders
from tpu_estimator_compat.tools.commands import hints
from tpu_estimator_compat.tools.reports.sources import say

NAME = "run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--logical-cpus",
        type=_count,
        default=0,
        metavar="N",
        help="split the CPU into N devices, which are N replicas under use_tpu=True",
    )
    parser.add_argument(
        "--runtime",
        choices=RUNTIMES,
        help="the runtime, where the script's RunConfig sets none: tensorflow; jax, under "
        "use_tpu=True, on JAX's TPUs, GPUs or CPUs; session, under use_tpu=False, the original's "
        "loops in TensorFlow's sessions; auto, which is session if TF_CONFIG names parameter "
        "servers or the script needs what only sessions have, jax if JAX has a TPU and TensorFlow "
        "has none, else tensorflow. "
        f"Sets the environment variable {RUNTIME_VARIABLE}",
    )
    parser.add_argument(
        "--profile",
        metavar="DIR",
        help="write a profile of some steps to this folder, for TensorBoard and chrome://tracing. "
        f"Sets the environment variable {PROFILE_VARIABLE}",
    )
    _add_dry_run(parser)
    add_script_arguments(parser)


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="run at most two steps of each train() and fit(), one of each evaluate(), one batch "
        "of each predict(), with all hooks, listeners, callbacks and exporters, and report which "
        "calls were reached. Temporary folders replace model_dirs, exports and the folders that "
        "the flags model_dir, output_dir and job_dir name; a model_dir starts with the newest "
        "checkpoint of the real one. Files that the script itself writes, moves or removes are not "
        "redirected. iterations_per_loop, save_checkpoints_steps, "
        "log_step_count_steps and intervals of hooks are unchanged: what needs more than two steps "
        "does not happen; each train() still ends with a checkpoint. The exit status is "
        "the script's, or 1 if it reached no call",
    )
    parser.add_argument(
        "--whole-predictions",
        action="store_true",
        help="with --dry-run: predict for all data, for scripts that count their predictions",
    )
    parser.add_argument(
        "--own-folder",
        action="append",
        default=[],
        metavar="FLAG",
        help="with --dry-run: a flag of the script, besides model_dir, output_dir and job_dir, "
        "that names a folder to write to: a temporary one replaces it; may be repeated",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="with --dry-run: also write the report as a JSON object"
    )


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that name a script and say how to run it; they come last."""
    parser.add_argument(
        "--legacy-package",
        action="append",
        default=[],
        metavar="NAME",
        help="an installed package to run as legacy code, like the script, where its code does not "
        "show that; may be repeated",
    )
    parser.add_argument(
        "--modern-package",
        action="append",
        default=[],
        metavar="NAME",
        help="an installed package that sees TensorFlow as it is, although it uses names that "
        "TensorFlow dropped; may be repeated",
    )
    parser.add_argument(
        "--numpy-legacy",
        action="store_true",
        help="also provide names that NumPy dropped, such as np.float and x.tostring()",
    )
    parser.add_argument(
        "--behavior",
        choices=["auto", "v1", "v2"],
        default="auto",
        help="v1: graphs, as in TensorFlow 1; v2: eager execution; auto, the default: what the "
        "script needs",
    )
    parser.add_argument(
        "-m",
        dest="module",
        action="store_true",
        help="SCRIPT is the name of a module, such as bert.run_classifier",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the path of the script")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the script's arguments")


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = -1
    if count < 0:
        raise argparse.ArgumentTypeError(f"expected a number of devices, got {text!r}")
    return count


def run(arguments: argparse.Namespace) -> int:
    locating.check(arguments.script, module=arguments.module)
    if arguments.runtime:
        os.environ[RUNTIME_VARIABLE] = arguments.runtime
    if arguments.profile:
        os.environ[PROFILE_VARIABLE] = arguments.profile
    if arguments.logical_cpus:
        with _imports():
            from tpu_estimator_compat.engine.topology import local
        local.split_cpu(arguments.logical_cpus)
    return _dry_run(arguments) if arguments.dry_run else run_script(arguments)


def _dry_run(arguments: argparse.Namespace) -> int:
    try:
        check_writable(arguments.json)
    except OSError as error:
        say(f"python -m tpu_estimator_compat {NAME}: error: --json: {error}", error=True)
        return 2
    with _imports():
        from tpu_estimator_compat.tools.dry_run import running
    from tpu_estimator_compat.tools.dry_run.report import told

    def execute(words: list[str]) -> int:
        given = {**vars(arguments), "args": words, "in_children": running.refuse_calls}
        return run_script(argparse.Namespace(**given))

    flags = (*script_folders.FLAGS, *arguments.own_folder)
    source = _source(arguments)
    started_in = os.getcwd()
    report = running.run(
        source,
        arguments.args,
        execute,
        flags,
        arguments.json,
        whole_predictions=arguments.whole_predictions,
    )
    with contextlib.chdir(started_in):  # the table names files from there
        print()
        told(report).show()
    assert report.status is not None
    return report.status


def _source(arguments: argparse.Namespace) -> str:
    """The path of the script's source; empty for a module without source."""
    if not arguments.module:
        return str(arguments.script)
    sys.path.insert(0, os.getcwd())  # as `script.run` will do
    try:
        spec = importlib.util.find_spec(arguments.script)
    except ImportError:
        spec = None
    del sys.path[0]
    return (spec.origin or "") if spec else ""


@contextlib.contextmanager
def _imports() -> Iterator[None]:
    """Suspends Python's garbage collector while TensorFlow is imported for the first time.

    The collector would look many times through the modules' objects, which live as long as the
    process: during the import, while model_fn makes a graph, and at the end. That took a third of
    the time of a process that imports TensorFlow and ends.
    """
    if "tensorflow" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
    gc.freeze()


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of commands whose report is a document."""
    parser.add_argument("--json", action="store_true", help="print a JSON object, not a table")
    parser.add_argument("--html", metavar="FILE", help="also write the report as an HTML page")


def check_writable(path: str | None) -> None:
    """Raises OSError where a report cannot be written, before the minutes of work on it."""
    if path is not None:
        with open(path, "a", encoding="utf-8"):
            pass


def run_script(arguments: argparse.Namespace) -> int:
    """Runs the script; returns 0, 1 after printing its traceback, 2 where there is no script.

    After Ctrl-C it returns 130, as shells do.
    """
    with _imports():
        from tpu_estimator_compat.old_names.legacy import script
    try:
        script.run(
            arguments.script,
            arguments.args,
            arguments.legacy_package,
            modern_packages=arguments.modern_package,
            module=arguments.module,
            numpy_legacy=arguments.numpy_legacy,
            behavior=arguments.behavior,
            in_children=getattr(arguments, "in_children", None),
        )
    except locating.NoScriptError as error:
        say(f"{arguments.parser.prog}: error: {error}", error=True)
        return 2
    except SystemExit:
        raise
    except BaseException as error:
        strip(error)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        if sys.excepthook is not sys.__excepthook__:
            sys.excepthook(type(error), error, error.__traceback__)
        elif sys.stderr is not None:  # `sys.excepthook` cannot show lines of notebook cells
            traceback.print_exception(error)
        for hint in hints.of(error, numpy_legacy=arguments.numpy_legacy):
            say(hint, error=True)
        return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def strip(error: BaseException | None) -> None:
    """Removes the frames of this package and of importlib from an error's tracebacks."""
    while error is not None:
        error.__traceback__ = _without(error.__traceback__)
        error = error.__cause__ or error.__context__


def _without(found: types.TracebackType | None) -> types.TracebackType | None:
    if found is None:
        return None
    rest = _without(found.tb_next)
    frame = found.tb_frame
    is_imports = frame.f_code.co_filename.startswith("<frozen importlib")  # Python hides these, too
    name = str(frame.f_globals.get("__name__"))
    if is_imports or name == __name__ or name.startswith(_HIDDEN):
        return rest
    return types.TracebackType(rest, found.tb_frame, found.tb_lasti, found.tb_lineno)


_HIDDEN = (
    "IPython.",
    "tpu_estimator_compat.keras_model.calls",
    "tpu_estimator_compat.old_names.legacy.",
    "tpu_estimator_compat.tools.dry_run.",
)
