"""Runs a script unchanged: names that TensorFlow dropped are there for it.

    python -m tpu_estimator_compat run train.py --train_steps=20
    python -m tpu_estimator_compat run --runtime jax -m package.train --its_flags

The script, or with -m the module, runs as `__main__` with the arguments that follow it.
`import tensorflow as tf`, `tensorflow.contrib`, `tf.estimator` and the like work in it, in modules
beside it, in its package, in those on PYTHONPATH that no installed package has, in installed
packages that use such names, and in those named with --legacy-package. All other code sees
TensorFlow as it is.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import gc
import os
import re
import signal
import sys
import traceback
import types
from collections.abc import Iterator

from tpu_estimator_compat.environment import PROFILE_VARIABLE, RUNTIME_VARIABLE, RUNTIMES
from tpu_estimator_compat.old_names.legacy import locating
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
        help="what runs the steps under use_tpu=True, where the script's RunConfig does not say: "
        "tensorflow; jax: JAX's TPUs, GPUs or CPUs; auto: jax, if that has a TPU and TensorFlow "
        f"has none. Sets the environment variable {RUNTIME_VARIABLE}",
    )
    parser.add_argument(
        "--profile",
        metavar="DIR",
        help="write a profile of some steps, for TensorBoard and for chrome://tracing. Sets the "
        f"environment variable {PROFILE_VARIABLE}",
    )
    add_script_arguments(parser)


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that name a script and say how to run it; they come last."""
    parser.add_argument(
        "--legacy-package",
        action="append",
        default=[],
        metavar="NAME",
        help="an installed package whose code is as old as the script, though it does not show its "
        "age; may be repeated",
    )
    parser.add_argument(
        "--modern-package",
        action="append",
        default=[],
        metavar="NAME",
        help="an installed package that is to see TensorFlow as it is, though it names what "
        "TensorFlow dropped; may be repeated",
    )
    parser.add_argument(
        "--numpy-legacy",
        action="store_true",
        help="let names that NumPy dropped work too, such as np.float and x.tostring()",
    )
    parser.add_argument(
        "--behavior",
        choices=["auto", "v1", "v2"],
        default="auto",
        help="v1: graphs, as in TensorFlow 1; v2: eager execution; default: as the script means",
    )
    parser.add_argument(
        "-m",
        dest="module",
        action="store_true",
        help="SCRIPT is the name of a module, such as bert.run_classifier",
    )
    parser.add_argument("script", help="the script")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = -1
    if count < 0:
        raise argparse.ArgumentTypeError(f"expected a number of devices, got {text!r}")
    return count


def run(arguments: argparse.Namespace) -> int:
    """Runs the script; returns its exit status, 1 after printing its traceback, 2 without one."""
    if not script_is_there(arguments, NAME):
        return 2
    if arguments.runtime:
        os.environ[RUNTIME_VARIABLE] = arguments.runtime
    if arguments.profile:
        os.environ[PROFILE_VARIABLE] = arguments.profile
    if arguments.logical_cpus:
        _split_cpu(arguments.logical_cpus)
    return run_script(arguments, NAME)


@contextlib.contextmanager
def _imports() -> Iterator[None]:
    """Suspends Python's garbage collector while TensorFlow is imported, unless that is done.

    It would look many times through the objects of the modules, which live as long as the process:
    during the import, while model_fn makes a graph, and at the end. That took a third of the time
    of a process that imports TensorFlow and ends.
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


def script_is_there(arguments: argparse.Namespace, command: str) -> bool:
    """Whether the script of `add_script_arguments` exists; prints an error where it does not."""
    try:
        locating.check(arguments.script, module=arguments.module)
    except locating.NoScriptError as error:
        say(f"python -m tpu_estimator_compat {command}: error: {error}", error=True)
        return False
    return True


def check_writable(path: str | None) -> None:
    """Raises OSError where a report cannot be written, before the minutes of work on it."""
    if path is not None:
        with open(path, "a", encoding="utf-8"):
            pass


def run_script(arguments: argparse.Namespace, command: str) -> int:
    """Runs the script; returns 0, 1 after printing its traceback, 2 where there is no script.

    After Ctrl-C it is 130, as shells have it.
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
        )
    except locating.NoScriptError as error:
        say(f"python -m tpu_estimator_compat {command}: error: {error}", error=True)
        return 2
    except SystemExit:
        raise
    except BaseException as error:
        _strip(error)
        if sys.excepthook is sys.__excepthook__:  # which cannot show lines of notebook cells
            traceback.print_exception(error)
        else:
            sys.excepthook(type(error), error, error.__traceback__)
        _hint(error, arguments)
        return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _split_cpu(count: int) -> None:
    with _imports():
        import tensorflow as tf
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * count
    tf.config.set_logical_device_configuration(cpu, parts)


_OF_BEHAVIOR_2 = (
    "Tensor is unhashable",
    "not compatible with eager execution",
    "not supported when eager execution is enabled",
)
"""Fragments of TensorFlow's error messages that mean: this script needs v1 behavior."""


def _hint(error: BaseException, arguments: argparse.Namespace) -> None:
    _hint_at_warning(error)
    text = str(error)
    package = _young_package(error)
    missing = _missing(error) if isinstance(error, ImportError) else None
    if package is not None:
        named = f"--legacy-package {package}"
        if missing is None or _is_served(*missing):
            advice = (
                f"If it is as old as the script, {named} gives it the names that TensorFlow "
                "dropped, and Keras 2 as keras."
            )
        else:
            name = ".".join(filter(None, missing))
            advice = f"{named} would not help: there is no {name} for legacy code either."
        print(
            f"This error is from {package}, which sees today's TensorFlow: it is neither the "
            f"script's own nor named. {advice}",
            file=sys.stderr,
        )
    elif missing is not None and missing[0].partition(".")[0] == "keras" and _is_served(*missing):
        print(
            "In the script's own modules keras is Keras 3, which lacks this. Keras 2 is tf_keras, "
            "and its inside tf_keras.src: import those instead.",
            file=sys.stderr,
        )
    of_numpy = "module 'numpy' has no attribute" in text or "attribute 'tostring'" in text
    if isinstance(error, AttributeError) and of_numpy and not arguments.numpy_legacy:
        print("NumPy dropped this name; --numpy-legacy lets it work.", file=sys.stderr)
    if arguments.behavior == "auto" and any(word in text for word in _OF_BEHAVIOR_2):
        print(
            "Nothing in the script says that it was written for TensorFlow 1, so it ran as with "
            "TensorFlow 2. If it was, --behavior v1 runs it with graphs, as it did.",
            file=sys.stderr,
        )


def _hint_at_warning(error: BaseException | None) -> None:
    """Says how AutoGraph gets past a warning that was made an error.

    It leaves the function unconverted then, whose `if x:` ends in the error.
    """
    if type(error).__name__ != "OperatorNotAllowedInGraphError":
        return
    while error is not None and not isinstance(error, Warning):
        error = error.__cause__ or error.__context__
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)] if error else []
    modules = [str(frame.f_globals.get("__name__")) for frame in frames]
    if any(name.startswith("tensorflow.python.autograph.pyct.") for name in modules):
        option = f"-W ignore::{type(error).__name__}:{modules[-1]}"
        print(
            "AutoGraph left a function as it is, since a warning was made an error, as by "
            f"`-W error` or PYTHONWARNINGS. With `{option}` behind, it converts the function.",
            file=sys.stderr,
        )


def _young_package(error: BaseException) -> str | None:
    """The package, not run as legacy code, whose error an older TensorFlow may not have caused.

    None if the error came from legacy code, or is not about TensorFlow.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        top = frame.f_globals.get("__name__", "").partition(".")[0]
        if top in _LIBRARIES or (top in sys.stdlib_module_names and top != "__main__"):
            continue
        if frame.f_builtins.get("__import__") is not builtins.__import__:
            return None  # legacy code has an `__import__` of its own
        if isinstance(error, ImportError):
            is_of_tensorflow = (error.name or "").partition(".")[0] in _LIBRARIES
        else:
            is_of_tensorflow = any(map(_is_tensorflow, list(frame.f_globals.values())))
        return top if is_of_tensorflow else None
    return None


def _missing(error: ImportError) -> tuple[str, str] | None:
    """The module of a failed import, and the name that it lacks; None for other libraries."""
    module = error.name or ""
    if module.partition(".")[0] not in _LIBRARIES:
        return None
    found = re.match(r"cannot import name '(\w+)'", str(error))
    return module, found.group(1) if found else ""


def _is_served(module: str, name: str) -> bool:
    """Whether the import that failed succeeds in an old package."""
    from tpu_estimator_compat.old_names.legacy import imports
    from tpu_estimator_compat.old_names.legacy.dialect import Dialect

    try:
        imports.imported(module, [name] if name else None, Dialect.V1)
    except ImportError:
        return False
    return True


def _is_tensorflow(value: object) -> bool:
    if not isinstance(value, types.ModuleType):
        return False
    return getattr(value, "__name__", "").partition(".")[0] in _LIBRARIES


def _strip(error: BaseException | None) -> None:
    """Removes this package's frames around and between the script's own from a traceback."""
    while error is not None:
        parsing = isinstance(error, SyntaxError)  # shows its place by itself
        error.__traceback__ = None if parsing else _without(error.__traceback__)
        error = error.__cause__ or error.__context__


def _without(found: types.TracebackType | None) -> types.TracebackType | None:
    if found is None:
        return None
    rest = _without(found.tb_next)
    if found.tb_frame.f_globals.get("__name__") in _OURS:
        return rest
    return types.TracebackType(rest, found.tb_frame, found.tb_lasti, found.tb_lineno)


_LIBRARIES = {"keras", "tensorflow", "tensorflow_estimator", "tf_keras", "tpu_estimator_compat"}
_OURS = {
    __name__,
    "tpu_estimator_compat.old_names.legacy.imports",
    "tpu_estimator_compat.old_names.legacy.notebook_magics",
    "tpu_estimator_compat.old_names.legacy.notebook_program",
    "tpu_estimator_compat.old_names.legacy.overlay",
    "tpu_estimator_compat.old_names.legacy.script",
    "tpu_estimator_compat.old_names.legacy.vendored",
}
