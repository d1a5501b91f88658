"""Keeps compilers' results in files, so that each program is compiled once."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import re
from typing import TYPE_CHECKING

from tpu_estimator_compat.engine.runtime import cache_files
from tpu_estimator_compat.tools.preflight.compiled import Compiled, Error
from tpu_estimator_compat.tools.reports import json_form

if TYPE_CHECKING:
    from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch
    from tpu_estimator_compat.tools.preflight.targets.target import Target

# The compiler's verdicts. Crashes and time-outs are not kept: they may not happen again.
_KEPT = (Error.NONE, Error.TOO_LARGE, Error.REFUSED)

# The module contains function names, with numbers that depend on the functions made before.
_FUNCTION_NUMBER = re.compile(rb"(_inference_\w+?_)\d+(?=__)")


def default_directory() -> pathlib.Path:
    """The folder of results, under $XDG_CACHE_HOME or ~/.cache."""
    return cache_files.directory("preflight")


def key(dispatch: Dispatch, target: Target, replicas: int, versions: dict[str, str]) -> str:
    """The name of the result's file.

    It depends on the program, on this package's code, on the devices and on the `versions` of the
    compiler's packages; not on the numbers in TensorFlow's function names.
    """
    request = [target.name, target.described(), replicas, versions, dispatch.to_json()]
    # The order of variables is that of the arguments.
    request = [*request, list(dispatch.step.variables)]
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode())
    digest.update(b"\0" + _FUNCTION_NUMBER.sub(rb"\g<1>", dispatch.step.code))
    digest.update(b"\0" + cache_files.sources())
    return digest.hexdigest()


def load(directory: pathlib.Path, name: str) -> Compiled | None:
    """The result of that name; None where its file is missing or damaged."""
    if (content := cache_files.read(directory / f"{name}.json")) is None:
        return None
    result: Compiled = json_form.decoded(Compiled, json.loads(content))
    return dataclasses.replace(result, cached=True)


def store(directory: pathlib.Path, name: str, result: Compiled) -> None:
    """Writes a result, if it is a verdict of the compiler and the directory is writable."""
    if result.error in _KEPT:
        content = json_form.text(json_form.encoded(result)).encode()
        cache_files.write(directory / f"{name}.json", content)
