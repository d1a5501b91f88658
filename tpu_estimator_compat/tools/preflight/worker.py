"""Compiles steps for devices that are not there: a script for a process of its own.

`python -P worker.py REQUEST` reads a JSON file and writes another; `compiler.py` starts it, with
an environment in which no device is opened. libtpu aborts the process on some programs, and its
libraries must not meet TensorFlow's in one process, so nothing here imports TensorFlow. It compiles
the very function that the JAX runtime runs.

The request:
  program: path of the step's module, as text or bytecode.
  dispatch: the steps, as `Dispatch.to_json` gives them.
  kind: key of `targets.BACKENDS`; described: the result of `Target.described`.
  devices: the number of these devices that run the program.
  directory: a folder. The compiler writes the program to its folder `dump`; this script writes
    the name of its stage to its file `stage`.
  answer: path of the answer.

The answer has `compiler`, and either `refused` (the compiler's words), `not_expressed` (why the
program is no StableHLO), or `memory`, `flops` and `bytes_accessed`. A process that ends without an
answer has crashed.
"""

from __future__ import annotations

# ruff: noqa: E402 (this script imports the package that contains it)
import importlib.util
import json
import os
import pathlib
import sys
import traceback
from typing import Any

from jax.extend.mlir import ir

_PACKAGE = "tpu_estimator_compat"


def _import_own_package() -> None:
    """Imports the package that contains this file, whatever else is on the path."""
    folder = pathlib.Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[_PACKAGE])


if _PACKAGE not in sys.modules:
    _import_own_package()

from tpu_estimator_compat.engine.jax import meshes
from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch
from tpu_estimator_compat.engine.jax.step_function import StepFunction
from tpu_estimator_compat.tools.preflight.targets import BACKENDS


def main(request_path: str) -> None:
    """Answers one request, and ends the process."""
    request = json.loads(pathlib.Path(request_path).read_text())
    code = 0
    try:
        answer = json.dumps(_answer(request))
        partial = pathlib.Path(request["answer"] + ".part")
        partial.write_text(answer)
        partial.rename(request["answer"])
    except Exception:
        traceback.print_exc()
        code = 1
    # Skips the destructors of compilers and jaxlib, which have nothing to save and may crash.
    os._exit(code)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    directory = pathlib.Path(request["directory"])
    backend = BACKENDS[request["kind"]]
    devices = backend.devices(request["described"], directory)[: request["devices"]]
    compiler = " ".join(devices[0].client.platform_version.split())
    (directory / "stage").write_text("compile")
    code = pathlib.Path(request["program"]).read_bytes()
    dispatch = Dispatch.from_json(code, request["dispatch"])
    try:
        lowered = _lowered(dispatch, devices)
    except (ir.MLIRError, NotImplementedError) as error:
        return {"compiler": compiler, "not_expressed": str(error)}
    except ValueError as error:
        if not isinstance(error.__cause__, ir.MLIRError):  # raised by JAX for an invalid module
            raise
        return {"compiler": compiler, "not_expressed": str(error.__cause__)}
    written = {"xla_dump_to": str(directory / "dump"), "xla_dump_hlo_as_text": True}
    options: dict[str, Any] = {**backend.options(), **written}
    try:
        executable = lowered.compile(compiler_options=options)
    except ir.MLIRError as error:
        return {"compiler": compiler, "not_expressed": str(error)}
    except RuntimeError as error:
        return {"compiler": compiler, "refused": str(error)}
    cost = backend.cost(lowered, executable, dispatch.cores)
    return {"compiler": compiler, "memory": _memory(executable), **cost}


def _lowered(dispatch: Dispatch, devices: tuple[Any, ...]) -> Any:
    mesh = meshes.mesh(devices, dispatch.cores)
    made = StepFunction(dispatch.step, mesh, dispatch.most, dispatch.loss, dispatch.partition)
    return made.lower()


def _memory(executable: Any) -> dict[str, int]:
    found = executable.memory_analysis()
    return {
        "arguments": found.argument_size_in_bytes,
        "outputs": found.output_size_in_bytes,
        "aliased": found.alias_size_in_bytes,
        "temporaries": found.temp_size_in_bytes,
        "code": found.generated_code_size_in_bytes,
    }


if __name__ == "__main__":
    main(sys.argv[1])
