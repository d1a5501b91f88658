"""Runs a probe in a child process, which may hang or die.

The process is `python -m tpu_estimator_compat.tools.doctor.probing REQUEST`. REQUEST is a JSON
object: a `module`, the name of a `function` in it, the function's `arguments`, and `answer`, the
path of the file to write.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pathlib
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tpu_estimator_compat.tools import child_process

_MODULE = "tpu_estimator_compat.tools.doctor.probing"
_LAST_LINES = 4
_STUCK = "It could not be killed: it waits for a driver that does not answer."
_RESTART = "Restart the machine; if that does not help, take another one."
_LONGEST_TAIL = 800  # characters

# TensorFlow and JAX share a GPU in one process, and each would take nearly all of its memory.
_SHARING = {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}

_HELD = re.compile(
    r"(libtpu|TPU|device)\b.* already in use|libtpu multi-process lockfile|Device or resource busy",
    re.IGNORECASE,
)
_KNOWN = (
    (
        _HELD,
        "Another process holds the TPU. `sudo lsof -w /dev/accel* /dev/vfio/*` names it: end it. "
        "If there is none, remove /tmp/libtpu_lockfile. Then run doctor again.",
    ),
    (
        re.compile(r"CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED|out of memory", re.IGNORECASE),
        "Another process holds the device's memory. `nvidia-smi` names it: end it, or set "
        "CUDA_VISIBLE_DEVICES to a device that is free.",
    ),
    (
        re.compile(r"File system scheme '(gs|s3)?.*not implemented"),
        "TensorFlow has no code for this kind of bucket: pip install tensorflow-io-gcs-filesystem",
    ),
    (
        re.compile(r"could not join the (other|others)"),
        "Start doctor on all processes of TF_CONFIG at the same time, and check that their "
        "addresses can be reached.",
    ),
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The answer of a probe, with its output as `log`; or its error, and advice."""

    answer: Any = None
    error: str = ""
    advice: str = ""
    log: str = ""


def run(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    time_limit: float,
    variables: Mapping[str, str | None] | None = None,
) -> Outcome:
    """Calls a function of a module in a child process; arguments and result must be JSON values.

    After `time_limit` seconds the process and its children are killed. None removes a variable.
    """
    with child_process.temporary_folder("doctor_") as folder:
        request = {
            "module": function.__module__,
            "function": function.__name__,
            "arguments": dict(arguments),
            "answer": str(folder / "answer"),
        }
        # With caches of its own, a probe compiles everything and leaves the user's caches alone.
        own = {
            "XDG_CACHE_HOME": str(folder / "cache"),
            "JAX_COMPILATION_CACHE_DIR": None,
            "TMPDIR": str(folder),
        }
        given = {**_SHARING, **os.environ, **own, **(variables or {})}
        environment = {key: value for key, value in given.items() if value is not None}
        command = child_process.module_command(_MODULE, json.dumps(request))
        process = child_process.start(command, folder / "log", environment=environment)
        ending = child_process.wait(process, time_limit)
        if ending.is_stuck:
            return Outcome(error=f"did not end within {time_limit:g} s. {_STUCK}", advice=_RESTART)
        text = (folder / "log").read_text(errors="replace")
        return _outcome(folder / "answer", ending, time_limit, text)


def _outcome(
    answer: pathlib.Path, ending: child_process.Ending, time_limit: float, log: str
) -> Outcome:
    code, how = ending.code, str(ending)
    if code == 0 and answer.exists():
        return Outcome(json.loads(answer.read_text()), log=log)
    if code is None:
        how = f"did not end within {time_limit:g} s and was killed"
        otherwise = (
            "Give it more time with --time_limit. On one host of several, start doctor on all of "
            "them at the same time."
        )
    elif code < 0:
        otherwise = "Look for incompatible versions, and for a machine that is out of memory."
    else:
        otherwise = "The last lines say why."
    if answer.exists():
        how += " after it had written its answer"
    return Outcome(error=f"{how}. {tail(log)}", advice=advice_for(log) or otherwise, log=log)


def advice_for(log: str) -> str:
    """Advice on known errors in a probe's output; empty for none."""
    return " ".join(advice for pattern, advice in _KNOWN if pattern.search(log))


def is_held(outcome: Outcome) -> bool:
    """Whether a probe's output says that another process has the device."""
    return _HELD.search(outcome.log) is not None


def tail(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()][-_LAST_LINES:]
    if not lines:
        return "It wrote nothing."
    return "Its last lines: " + " | ".join(lines)[-_LONGEST_TAIL:]


def main(request: str) -> None:
    """Writes the answer to a request, and returns: a crash at exit shows in the exit status."""
    asked = json.loads(request)
    path = pathlib.Path(asked["answer"])
    function = getattr(importlib.import_module(asked["module"]), asked["function"])
    answer = function(**asked["arguments"])
    path.with_suffix(".part").write_text(json.dumps(answer))
    path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    main(sys.argv[1])
