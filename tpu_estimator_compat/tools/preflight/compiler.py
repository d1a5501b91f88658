"""Compiles a step for absent devices, with the devices' own compiler, in a child process.

The child needs neither the devices nor TensorFlow. The caller gets a result even if the child
aborts, hangs or is killed. Results are kept in files, so that each program is compiled once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.files import cache_files
from tpu_estimator_compat.engine.jax import installation as jax_installation
from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.preflight.compiled import Compiled, Error, RawBuffer
from tpu_estimator_compat.tools.preflight.compiler_dump import STEP, CompilerDump
from tpu_estimator_compat.tools.preflight.report import Memory
from tpu_estimator_compat.tools.preflight.targets.target import Target
from tpu_estimator_compat.tools.reports import json_form

if TYPE_CHECKING:
    from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch

# Prefixes of the environment variables that JAX, its plugins and XLA read.
_OF_COMPILERS = ("JAX_", "XLA_", "TPU_", "LIBTPU_", "PJRT_")
# Keeps JAX from opening a device.
_FOR_ALL = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}

_WORKER = "tpu_estimator_compat.tools.preflight.worker"

# The compiler's verdicts. Crashes and time-outs are not kept: they may not happen again.
_KEPT = (Error.NONE, Error.TOO_LARGE, Error.REFUSED)
# The module contains function names, with numbers that depend on the functions made before.
_FUNCTION_NUMBER = re.compile(rb"(_inference_\w+?_)\d+(?=__)")

_LEFT_OVER = "failed to legalize operation 'mhlo."  # a fault of TensorFlow's lowering
# The end of an error: machine-readable payload, and Python lines that are not the user's.
_PAYLOAD = re.compile(
    r"\s*(\[(type\.googleapis\.com/|xla::)|Suspected Python Code Location:).*", re.DOTALL
)
# The prefix that the JAX runtime gives to the names of a step's operations.
_AROUND_STEP = re.compile(rf'"[^"\s]*{STEP}/')
# Lines of a stack trace: libtpu's have no function names.
_STACK = re.compile(r"^(\s+@ |PC: @|\*\*\*|https://symbolize).*\n?", re.MULTILINE)
_FATAL = re.compile(r"^F\d{4} [\d:.]+ +\d+ (\S+)\] (.*)", re.MULTILINE)


def compile(
    dispatch: Dispatch,
    target: Target,
    replicas: int,
    *,
    time_limit: float = 3600,
    progress: Callable[[float], None] = lambda seconds: None,
) -> Compiled:
    """Compiles the function that the JAX runtime runs on `replicas` replicas, or reads the cache.

    Args:
      time_limit: seconds after which the compiler is stopped.
      progress: called at once and about once a second with the elapsed seconds; not for a cached
        result.
    """
    if not 1 <= replicas * dispatch.cores <= target.devices:
        raise ValueError(
            f"{target.name} has {target.devices} device(s), {dispatch.cores} for each replica; "
            f"got {replicas} replicas."
        )
    versions = {name: jax_installation.version_of(name) or "" for name in target.packages}
    if missing := _missing(target, versions):
        return Compiled(error=Error.MISSING, message=missing)
    name = key(dispatch, target, replicas, versions)
    path = cache_files.directory("preflight") / f"{name}.json"
    if (content := cache_files.read(path)) is not None:
        result: Compiled = json_form.decoded(Compiled, json.loads(content))
        result = dataclasses.replace(result, cached=True)
    else:
        result = _compile(dispatch, target, replicas, time_limit, progress)
        if result.error in _KEPT:
            cache_files.write(path, json_form.text(result).encode())
    return target.judged(result)


def key(dispatch: Dispatch, target: Target, replicas: int, versions: dict[str, str]) -> str:
    """The name of the result's file.

    It depends on the program, on this package's files, on the devices and on the `versions` of the
    compiler's packages; not on the numbers in TensorFlow's function names.
    """
    # The order of variables is that of the arguments.
    variables = list(dispatch.step.variables)
    request = [target.name, replicas, versions, dispatch.to_json(), variables]
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode())
    digest.update(b"\0" + _FUNCTION_NUMBER.sub(rb"\g<1>", dispatch.step.code))
    digest.update(b"\0" + cache_files.sources())
    return digest.hexdigest()


def _missing(target: Target, versions: dict[str, str]) -> str:
    """The error for missing packages or wrong versions; empty if there are none."""
    wanted, kind = target.packages, target.kind
    if all(v and v == (wanted[package] or v) for package, v in versions.items()):
        return ""
    jax = f"{jax_installation.OLDEST} to {jax_installation.NEWEST}"
    needed = ", ".join(f"{p}=={v}" if v else f"{p} {jax}" for p, v in wanted.items())
    there = ", ".join(f"{p} {v}" if v else f"no {p}" for p, v in versions.items())
    return (
        f"Compiling for a {kind} needs {needed}; found {there}. Install them with "
        f"`{environment.pip_line(target.extra)}`. No {kind} is needed."
    )


def _compile(
    dispatch: Dispatch,
    target: Target,
    replicas: int,
    time_limit: float,
    progress: Callable[[float], None],
) -> Compiled:
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(child_process.temporary_folder("tpu_preflight_"))
            write_request(folder, dispatch, target, replicas)
            process = child_process.start(
                child_process.module_command(_WORKER, str(folder)),
                folder / "log",
                environment=environment_of(target),
                folder=folder,
            )
        except OSError as error:
            message = f"The compiler could not be started: {error}"
            return Compiled(error=Error.CRASHED, message=message)
        ending = child_process.wait(process, time_limit, progress)
        if ending.code is None:
            message = (
                f"The compiler did not end within {time_limit:g} s and was stopped. Give it more "
                "time, or a machine with faster or idle processors."
            )
            result = Compiled(error=Error.TIMED_OUT, message=message)
        else:
            result = _read(folder, dispatch, target, ending)
    return dataclasses.replace(result, seconds=time.monotonic() - start)


def write_request(folder: pathlib.Path, dispatch: Dispatch, target: Target, replicas: int) -> None:
    """Writes the files that `worker.py` describes."""
    (folder / "program").write_bytes(dispatch.step.code)
    devices = replicas * dispatch.cores
    request = {"target": target.name, "devices": devices, "dispatch": dispatch.to_json()}
    (folder / "request").write_text(json.dumps(request))


def environment_of(target: Target) -> dict[str, str]:
    """This process's environment, without variables that select devices or compiler options."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_OF_COMPILERS)}
    return {**kept, **_FOR_ALL, **target.variables}


def _read(
    folder: pathlib.Path, dispatch: Dispatch, target: Target, ending: child_process.Ending
) -> Compiled:
    try:
        answer = json.loads((folder / "answer").read_text())
        compiler = answer["compiler"]
        if "not_expressed" in answer:
            return _not_expressed(answer["not_expressed"], compiler)
        files = CompilerDump(folder / "dump", target)
        buffers = files.buffers(dispatch.step.stored)
        if "refused" in answer:
            return _refused(answer["refused"], compiler, target, buffers)
        return Compiled(
            memory=Memory(**answer["memory"]),
            flops=answer["flops"],
            bytes_accessed=answer["bytes_accessed"],
            collectives=files.collectives(),
            convolutions=files.convolutions(),
            buffers=buffers,
            compiler=compiler,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return _crashed(ending, (folder / "log").read_text(errors="replace"))


def _refused(
    message: str, compiler: str, target: Target, buffers: tuple[RawBuffer, ...]
) -> Compiled:
    message = _AROUND_STEP.sub('"', _PAYLOAD.sub("", message)).strip()
    if sizes := target.sizes(message):
        needed, available = sizes
        return Compiled(
            error=Error.TOO_LARGE,
            message=message,
            needed=needed,
            available=available,
            buffers=buffers,
            compiler=compiler,
        )
    if _LEFT_OVER in message:
        return _not_expressed(message, compiler)
    return Compiled(error=Error.REFUSED, message=message, compiler=compiler)


def _not_expressed(message: str, compiler: str) -> Compiled:
    words = f"The step cannot be written as StableHLO, which the compiler reads: {message}"
    return Compiled(error=Error.NOT_EXPRESSED, message=words, compiler=compiler)


def _crashed(ending: child_process.Ending, log: str) -> Compiled:
    how = str(ending)
    if (ending.code or 0) >= 0:
        how += " and without a readable answer"
    if fatal := _FATAL.search(log):
        why = f"{fatal[2].strip()} ({fatal[1]})"
    elif ending.code == -signal.SIGKILL:
        why = "The machine may have run out of memory."
    else:
        lines = _STACK.sub("", log).strip().split("\n")
        why = "Last lines of its log: " + " ".join(line.strip() for line in lines[-3:])[-1000:]
    return Compiled(error=Error.CRASHED, message=f"The compiler {how}. {why}")
