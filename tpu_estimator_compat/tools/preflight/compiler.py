"""Compiles a step for absent devices, with the devices' own compiler, in a child process.

The child needs neither the devices nor TensorFlow. The caller gets a result even if the child
aborts, hangs or is killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.jax import installation as jax_installation
from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.preflight import compile_cache
from tpu_estimator_compat.tools.preflight.compiled import Compiled, Error, RawBuffer
from tpu_estimator_compat.tools.preflight.compiler_dump import STEP, CompilerDump
from tpu_estimator_compat.tools.preflight.report import Memory
from tpu_estimator_compat.tools.preflight.targets import BACKENDS
from tpu_estimator_compat.tools.preflight.targets.target import Backend, Target

if TYPE_CHECKING:
    from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch

Progress = Callable[[str, float], None]

# Prefixes of the environment variables that JAX, its plugins and XLA read.
_OF_COMPILERS = ("JAX_", "XLA_", "TPU_", "LIBTPU_", "PJRT_")
# Keeps JAX from opening a device.
_FOR_ALL = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}

_WORKER = pathlib.Path(__file__).with_name("worker.py")

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
    progress: Progress | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Compiled:
    """Compiles the function that the JAX runtime runs on `replicas` replicas, or reads the cache.

    Args:
      time_limit: seconds after which the compiler is stopped.
      progress: called at once and about once a second with the stage, "start" or "compile", and
        the elapsed seconds; not for a cached result.
    """
    if not 1 <= replicas * dispatch.cores <= target.devices:
        raise ValueError(
            f"{target.name} has {target.devices} device(s), {dispatch.cores} for each replica; "
            f"got {replicas} replicas."
        )
    backend = BACKENDS[target.kind]
    versions = _versions(backend)
    if missing := _missing(target.kind, backend, versions):
        return Compiled(error=Error.MISSING, message=missing)
    directory = pathlib.Path(cache_dir) if cache_dir else compile_cache.default_directory()
    key = compile_cache.key(dispatch, target, replicas, versions)
    result = compile_cache.load(directory, key)
    if result is None:
        result = _compile(dispatch, target, replicas, time_limit, progress)
        compile_cache.store(directory, key, result)
    return target.judged(result)


def _versions(backend: Backend) -> dict[str, str]:
    """The installed versions of the compiler's packages, empty if missing; imports none."""
    found = {}
    for package in backend.packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = ""
    return found


def _missing(kind: str, backend: Backend, versions: dict[str, str]) -> str:
    """The error for missing packages or wrong versions; empty if there are none."""
    wanted = backend.packages
    if all(v and v == (wanted[package] or v) for package, v in versions.items()):
        return ""
    jax = f"{jax_installation.OLDEST} to {jax_installation.NEWEST}"
    needed = ", ".join(f"{p}=={v}" if v else f"{p} {jax}" for p, v in wanted.items())
    there = ", ".join(f"{p} {v}" if v else f"no {p}" for p, v in versions.items())
    return (
        f"Compiling for a {kind} needs {needed}; found {there}. Install them with "
        f"`{environment.pip_line(backend.extra)}`. No {kind} is needed."
    )


def _compile(
    dispatch: Dispatch, target: Target, replicas: int, time_limit: float, progress: Progress | None
) -> Compiled:
    start = time.monotonic()
    backend = BACKENDS[target.kind]

    def tell(seconds: float) -> None:
        if progress is not None:
            progress(_stage(directory), seconds)

    with contextlib.ExitStack() as stack:
        try:
            temporary = child_process.temporary_folder("tpu_preflight_")
            directory = stack.enter_context(temporary)
            _write_request(directory, dispatch, target, replicas)
            process = _start_worker(directory, backend.variables)
        except OSError as error:
            message = f"The compiler could not be started: {error}"
            return Compiled(error=Error.CRASHED, message=message)
        ending = child_process.wait(process, time_limit, tell)
        if ending.code is None:
            result = _timed_out(time_limit)
        else:
            result = _read(directory, dispatch, backend, ending)
    return dataclasses.replace(result, seconds=time.monotonic() - start)


def _write_request(
    directory: pathlib.Path, dispatch: Dispatch, target: Target, replicas: int
) -> None:
    (directory / "program").write_bytes(dispatch.step.code)
    request = {
        "program": str(directory / "program"),
        "dispatch": dispatch.to_json(),
        "kind": target.kind,
        "described": target.described(),
        "devices": replicas * dispatch.cores,
        "directory": str(directory),
        "answer": str(directory / "answer"),
    }
    (directory / "request").write_text(json.dumps(request))


def _start_worker(directory: pathlib.Path, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    return child_process.start(
        # -P: modules beside the worker must not hide others of the same name.
        [sys.executable, "-P", str(_WORKER), str(directory / "request")],
        directory / "log",
        environment=_environment(variables),
        folder=directory,
    )


def _environment(variables: dict[str, str]) -> dict[str, str]:
    """This process's environment, without variables that select devices or compiler options."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_OF_COMPILERS)}
    return {**kept, **_FOR_ALL, **variables}


def _stage(directory: pathlib.Path) -> str:
    try:
        return (directory / "stage").read_text() or "start"
    except OSError:
        return "start"


def _timed_out(time_limit: float) -> Compiled:
    return Compiled(
        error=Error.TIMED_OUT,
        message=(
            f"The compiler did not end within {time_limit:g} s and was stopped. Give it more "
            "time, or a machine with faster or idle processors."
        ),
    )


def _read(
    directory: pathlib.Path, dispatch: Dispatch, backend: Backend, ending: child_process.Ending
) -> Compiled:
    try:
        answer = json.loads((directory / "answer").read_text())
        compiler = backend.name(answer)
        if "not_expressed" in answer:
            return _not_expressed(str(answer["not_expressed"]), compiler)
        files = CompilerDump(directory / "dump", backend.dump)
        buffers = files.buffers(dispatch.step.stored)
        if "refused" in answer:
            return _refused(str(answer["refused"]), compiler, backend, buffers)
        return Compiled(
            memory=Memory(**{kind: int(size) for kind, size in answer["memory"].items()}),
            flops=_number(answer["flops"]),
            bytes_accessed=_number(answer["bytes_accessed"]),
            collectives=files.collectives(),
            convolutions=files.convolutions(),
            buffers=buffers,
            compiler=compiler,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return _crashed(ending, (directory / "log").read_text(errors="replace"))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _refused(
    message: str, compiler: str, backend: Backend, buffers: tuple[RawBuffer, ...]
) -> Compiled:
    message = _AROUND_STEP.sub('"', _PAYLOAD.sub("", message)).strip()
    if sizes := backend.sizes(message):
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
