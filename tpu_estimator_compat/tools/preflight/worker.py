"""Compiles steps for devices that are not there, in a process of its own.

`compiler.py` starts it with a folder, in an environment in which no device is opened. libtpu aborts
the process on some programs, and its libraries must not meet TensorFlow's in one process, so
nothing here imports TensorFlow. It compiles the very function that the JAX runtime runs.

The folder has `program`, the step's module as text or bytecode, and `request`, a JSON object:
  target: the devices, as `targets.parse` takes them; devices: the number of those that run it.
  dispatch: the steps, as `Dispatch.to_json` gives them.

The file `answer` then has `compiler` (name and version, then after a comma more on it), and either
`refused` (the compiler's words), `not_expressed` (why the program is no StableHLO), or `memory`,
`flops` and `bytes_accessed`. The compiler writes the program to the folder `dump`. A process that
ends without an answer has crashed.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import traceback
from typing import Any

from jax.extend.mlir import ir

from tpu_estimator_compat.engine.jax import meshes
from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch
from tpu_estimator_compat.engine.jax.step_function import StepFunction
from tpu_estimator_compat.tools.preflight import targets


def main(folder: pathlib.Path) -> None:
    """Answers one request, and ends the process."""
    code = 0
    try:
        (folder / "answer.part").write_text(json.dumps(answer(folder)))
        (folder / "answer.part").rename(folder / "answer")
    except Exception:
        traceback.print_exc()
        code = 1
    # Skips the destructors of compilers and jaxlib, which have nothing to save and may crash.
    os._exit(code)


def answer(folder: pathlib.Path) -> dict[str, Any]:
    request = json.loads((folder / "request").read_text())
    target = targets.parse(request["target"])
    devices = target.jax_devices(folder)[: request["devices"]]
    version = " ".join(devices[0].client.platform_version.split())
    compiler = f"{target.compiler}, {version}"
    dispatch = Dispatch.from_json((folder / "program").read_bytes(), request["dispatch"])
    try:
        mesh = meshes.mesh(devices, dispatch.cores)
        steps = StepFunction(dispatch.step, mesh, dispatch.most, dispatch.loss, dispatch.partition)
        lowered = steps.lower()
    except (ir.MLIRError, NotImplementedError) as error:
        return {"compiler": compiler, "not_expressed": str(error)}
    except ValueError as error:
        if not isinstance(error.__cause__, ir.MLIRError):  # raised by JAX for an invalid module
            raise
        return {"compiler": compiler, "not_expressed": str(error.__cause__)}
    written = {"xla_dump_to": str(folder / "dump"), "xla_dump_hlo_as_text": True}
    try:
        executable = lowered.compile(compiler_options={**target.options, **written})
    except ir.MLIRError as error:
        return {"compiler": compiler, "not_expressed": str(error)}
    except RuntimeError as error:
        return {"compiler": compiler, "refused": str(error)}
    cost = target.cost(lowered, executable, dispatch.cores)
    return {"compiler": compiler, "memory": _memory(executable), **cost}


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
    main(pathlib.Path(sys.argv[1]))
