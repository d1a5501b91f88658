"""Compiles a step for a TPU topology with the TPU's own compiler, in a process of its own.

Neither a TPU nor TensorFlow is needed. Whatever happens to that process, which may abort, hang or
be killed, the caller gets a result.
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
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat import environment
from tpu_estimator_compat.preflight import compile_cache, compiler_dump
from tpu_estimator_compat.preflight.compiled import Compiled, Error, RawBuffer
from tpu_estimator_compat.preflight.report import Memory
from tpu_estimator_compat.preflight.topologies import TpuTopology
from tpu_estimator_compat.runtime import jax_installation

if TYPE_CHECKING:
    from tpu_estimator_compat.lowering.step_module import Dispatch

LIBTPU = "0.0.51"
"""The release of the TPU's compiler that the extra `preflight` installs."""

Progress = Callable[[str, float], None]

_WORKER = pathlib.Path(__file__).with_name("worker.py")

_SIZE = r"([\d.]+)([BKMGTP])"
_TOO_LARGE = re.compile(rf"\({_SIZE}\) exceeds available HBM \({_SIZE}\)")
_TOO_LARGE_PLACED = re.compile(rf"Used {_SIZE} of {_SIZE} hbm\. Exceeded hbm capacity by {_SIZE}")
# What the compiler appends for other programs to read, and lines of Python that nobody wrote.
_LEFT_OVER = "failed to legalize operation 'mhlo."  # of TensorFlow's lowering, not the user's fault
_PAYLOAD = re.compile(
    r"\s*(\[(type\.googleapis\.com/|xla::)|Suspected Python Code Location:).*", re.DOTALL
)
# What the runtime puts before the names of a step's operations.
_AROUND_STEP = re.compile(rf'"[^"\s]*{compiler_dump.STEP}/')
# Lines of a stack without names, which libtpu has none of.
_STACK = re.compile(r"^(\s+@ |PC: @|\*\*\*|https://symbolize).*\n?", re.MULTILINE)
_FATAL = re.compile(r"^F\d{4} [\d:.]+ +\d+ (\S+)\] (.*)", re.MULTILINE)


def compile(
    dispatch: Dispatch,
    topology: TpuTopology,
    replicas: int,
    *,
    time_limit: float = 3600,
    progress: Progress | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Compiled:
    """What the TPU's compiler says of a program: of the function that the JAX runtime runs.

    Args:
      dispatch: the program.
      topology: what it is compiled for.
      replicas: how many run it, on the first devices of the topology.
      time_limit: seconds after which the compiler is stopped.
      progress: called at the beginning and about once a second with what is being done, "start" or
        "compile", and the seconds since the beginning; not if the answer is known from before.
      cache_dir: where results are kept; by default under $XDG_CACHE_HOME or ~/.cache.

    Raises:
      ValueError: the topology has fewer devices than replicas, or there are no replicas.
    """
    if not 1 <= replicas * dispatch.cores <= topology.devices:
        raise ValueError(
            f"{topology.name} has {topology.devices} device(s), {dispatch.cores} for each replica; "
            f"got {replicas} replicas."
        )
    versions = _versions()
    if missing := _missing(versions):
        return Compiled(error=Error.MISSING, message=missing)
    directory = pathlib.Path(cache_dir) if cache_dir else compile_cache.default_directory()
    key = compile_cache.key(dispatch, topology.name, replicas, versions)
    result = compile_cache.load(directory, key)
    if result is None:
        result = _compile(dispatch, topology, replicas, time_limit, progress)
        compile_cache.store(directory, key, result)
    return result


def _versions() -> dict[str, str]:
    """The installed releases of the packages that compile; empty for none. Imports nothing."""
    found = {}
    for package in ("jax", "jaxlib", "libtpu"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = ""
    return found


def _missing(versions: dict[str, str]) -> str:
    """What has to be installed; empty if everything is there."""
    if all(versions.values()) and versions["libtpu"] == LIBTPU:
        return ""
    there = ", ".join(f"{p} {v}" if v else f"no {p}" for p, v in versions.items())
    return (
        f"Compiling for a TPU needs jax {jax_installation.OLDEST} to {jax_installation.NEWEST} and "
        f"libtpu=={LIBTPU}; found {there}. Install them with "
        f"`{environment.pip_line('preflight')}`. No TPU is needed."
    )


def _compile(
    dispatch: Dispatch,
    topology: TpuTopology,
    replicas: int,
    time_limit: float,
    progress: Progress | None,
) -> Compiled:
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        try:
            temporary = tempfile.TemporaryDirectory(
                prefix="tpu_preflight_", ignore_cleanup_errors=True
            )
            directory = pathlib.Path(stack.enter_context(temporary))
            _write_request(directory, dispatch, topology, replicas)
            process = _start_worker(directory)
        except OSError as error:
            message = f"The TPU compiler could not be started: {error}"
            return Compiled(error=Error.CRASHED, message=message)
        code = _wait(process, directory, start, time_limit, progress)
        result = _timed_out(time_limit) if code is None else _read(directory, dispatch, code)
    return dataclasses.replace(result, seconds=time.monotonic() - start)


def _write_request(
    directory: pathlib.Path, dispatch: Dispatch, topology: TpuTopology, replicas: int
) -> None:
    (directory / "program").write_bytes(dispatch.step.code)
    request = {
        "program": str(directory / "program"),
        "dispatch": dispatch.to_json(),
        "topology": topology.name,
        "chip_config": topology.chip_config,
        "devices": replicas * dispatch.cores,
        "directory": str(directory),
        "answer": str(directory / "answer"),
    }
    (directory / "request").write_text(json.dumps(request))


def _start_worker(directory: pathlib.Path) -> subprocess.Popen[bytes]:
    with (directory / "log").open("wb") as log:
        return subprocess.Popen(
            # -P: the modules beside the worker are not to be taken for others of the same name.
            [sys.executable, "-P", str(_WORKER), str(directory / "request")],
            cwd=directory,
            stdin=subprocess.PIPE,  # its end tells the worker that this process is gone
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait(
    process: subprocess.Popen[bytes],
    directory: pathlib.Path,
    start: float,
    time_limit: float,
    progress: Progress | None,
) -> int | None:
    """Exit code of the worker; None if it did not end in time. No process of its group is left."""
    try:
        while (left := start + time_limit - time.monotonic()) > 0:
            if progress is not None:
                progress(_stage(directory), time.monotonic() - start)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=min(1, left))
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdin is not None:
            process.stdin.close()


def _stage(directory: pathlib.Path) -> str:
    try:
        return (directory / "stage").read_text() or "start"
    except OSError:
        return "start"


def _timed_out(time_limit: float) -> Compiled:
    return Compiled(
        error=Error.TIMED_OUT,
        message=(
            f"The TPU compiler did not end within {time_limit:g} s and was stopped. Give it more "
            "time, or a machine with faster or idle processors."
        ),
    )


def _read(directory: pathlib.Path, dispatch: Dispatch, code: int) -> Compiled:
    """The result that the worker has left."""
    try:
        answer = json.loads((directory / "answer").read_text())
        compiler = f"libtpu {LIBTPU}, {answer['compiler']}"
        if "not_expressed" in answer:
            return _not_expressed(str(answer["not_expressed"]), compiler)
        if "refused" in answer:
            return _refused(str(answer["refused"]), compiler, directory, dispatch)
        return Compiled(
            memory=Memory(**{kind: int(size) for kind, size in answer["memory"].items()}),
            flops=_number(answer["flops"]),
            bytes_accessed=_number(answer["bytes_accessed"]),
            collectives=compiler_dump.collectives(directory / "dump"),
            buffers=_buffers(directory, dispatch),
            compiler=compiler,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return _crashed(code, (directory / "log").read_text(errors="replace"))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _buffers(directory: pathlib.Path, dispatch: Dispatch) -> tuple[RawBuffer, ...]:
    return compiler_dump.buffers(directory / "dump", dispatch.step.stored)


def _refused(message: str, compiler: str, directory: pathlib.Path, dispatch: Dispatch) -> Compiled:
    message = _AROUND_STEP.sub('"', _PAYLOAD.sub("", message)).strip()
    if match := _TOO_LARGE_PLACED.search(message):
        available = _bytes(match[3], match[4])
        needed = available + _bytes(match[5], match[6])
    elif match := _TOO_LARGE.search(message):
        needed, available = _bytes(match[1], match[2]), _bytes(match[3], match[4])
    elif _LEFT_OVER in message:
        return _not_expressed(message, compiler)
    else:
        return Compiled(error=Error.REFUSED, message=message, compiler=compiler)
    return Compiled(
        error=Error.TOO_LARGE,
        message=message,
        needed=needed,
        available=available,
        buffers=_buffers(directory, dispatch),
        compiler=compiler,
    )


def _not_expressed(message: str, compiler: str) -> Compiled:
    words = f"The step cannot be written as StableHLO, which the compiler reads: {message}"
    return Compiled(error=Error.NOT_EXPRESSED, message=words, compiler=compiler)


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * 1024.0 ** "BKMGTP".index(unit))


def _crashed(code: int, log: str) -> Compiled:
    if code < 0:
        how = f"was ended by {signal.Signals(-code).name}"
    else:
        how = f"ended with exit code {code} and without a readable answer"
    if fatal := _FATAL.search(log):
        why = f"{fatal[2].strip()} ({fatal[1]})"
    elif code == -signal.SIGKILL:
        why = "Such an end is often that of a machine without memory left."
    else:
        lines = _STACK.sub("", log).strip().split("\n")
        why = "Its last words: " + " ".join(line.strip() for line in lines[-3:])[-1000:]
    return Compiled(error=Error.CRASHED, message=f"The TPU compiler {how}. {why}")
