"""Compiles steps with the TPU's compiler: a script for a process of its own.

`python -P worker.py REQUEST` reads a JSON file and writes another; `compiler.py` starts it. libtpu
aborts the process on some programs, and its libraries are not to meet TensorFlow's in one process,
so nothing here imports TensorFlow. What is compiled is the very function that the JAX runtime runs.

The request:
  program: path of the step's module, as text or bytecode.
  dispatch: what `Dispatch.to_json` says of the steps.
  topology: libtpu's name, such as "v5e:2x2"; chip_config: libtpu's name, or empty.
  devices: how many of the topology's devices run the program.
  directory: where libtpu writes the compiled program in `dump`, and this script in `stage` what
    is being done. Removed here if the parent dies.
  answer: path of the answer.

The answer has `compiler`, and either `refused` (the compiler's words), `not_expressed` (why the
program is no StableHLO), or `memory`, `flops` and `bytes_accessed`. A process that ends without an
answer has crashed.
"""

from __future__ import annotations

# ruff: noqa: E402 (jax reads the environment when it is imported)
import os

# The device is never opened: libtpu is told what its machine would be, and that other processes may
# load it too. Variables of the user's may name a real TPU or change what is compiled.
_OURS = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_MIN_LOG_LEVEL": "3",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
for _name in list(os.environ):
    if _name.startswith(("JAX_", "XLA_", "TPU_", "LIBTPU_", "PJRT_")):
        del os.environ[_name]
os.environ.update(_OURS)

import importlib.util
import json
import pathlib
import shutil
import sys
import threading
import traceback
from typing import Any

from jax.experimental import topologies
from jax.extend.mlir import ir

_PACKAGE = "tpu_estimator_compat"


def _import_own_package() -> None:
    """Imports the package that this file is part of, whatever else is on the path."""
    folder = pathlib.Path(__file__).resolve().parents[1]
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[_PACKAGE])


if _PACKAGE not in sys.modules:
    _import_own_package()

from tpu_estimator_compat.jax_runtime.step_function import StepFunction
from tpu_estimator_compat.lowering.step_module import Dispatch
from tpu_estimator_compat.runtime import jax_mesh


def main(request_path: str) -> None:
    """Answers one request, and ends the process."""
    request = json.loads(pathlib.Path(request_path).read_text())
    threading.Thread(target=_die_with_parent, args=(request["directory"],), daemon=True).start()
    code = 0
    try:
        answer = json.dumps(_answer(request))
        partial = pathlib.Path(request["answer"] + ".part")
        partial.write_text(answer)
        partial.rename(request["answer"])
    except Exception:
        traceback.print_exc()
        code = 1
    # Without the destructors of libtpu and jaxlib, which have nothing to save and may crash.
    os._exit(code)


def _die_with_parent(directory: str) -> None:
    os.read(0, 1)  # the parent holds the other end, and never writes
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(1)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    directory = pathlib.Path(request["directory"])
    os.environ["TPU_LOG_DIR"] = str(directory)  # read when libtpu is loaded, which is below
    chip = {"chip_config_name": request["chip_config"]} if request["chip_config"] else {}
    topology: Any = topologies.get_topology_desc(
        platform="tpu", topology_name=request["topology"], **chip
    )
    devices = tuple(topology.devices[: request["devices"]])
    compiler = " ".join(devices[0].client.platform_version.split())
    (directory / "stage").write_text("compile")
    code = pathlib.Path(request["program"]).read_bytes()
    dispatch = Dispatch.from_json(code, request["dispatch"])
    try:
        lowered = _lowered(dispatch, devices)
    except (ir.MLIRError, NotImplementedError) as error:
        return {"compiler": compiler, "not_expressed": str(error)}
    except ValueError as error:
        if not isinstance(error.__cause__, ir.MLIRError):  # JAX's, where a module is not valid
            raise
        return {"compiler": compiler, "not_expressed": str(error.__cause__)}
    options: dict[str, Any] = {"xla_dump_to": str(directory / "dump"), "xla_dump_hlo_as_text": True}
    try:
        executable = lowered.compile(compiler_options=options)
    except ir.MLIRError as error:
        return {"compiler": compiler, "not_expressed": str(error)}
    except RuntimeError as error:
        return {"compiler": compiler, "refused": str(error)}
    return {"compiler": compiler, **_figures(executable)}


def _lowered(dispatch: Dispatch, devices: tuple[Any, ...]) -> Any:
    mesh = jax_mesh.mesh(devices, dispatch.cores)
    made = StepFunction(dispatch.step, mesh, dispatch.most, dispatch.loss, dispatch.partition)
    return made.lower()


def _figures(executable: Any) -> dict[str, Any]:
    memory, cost = executable.memory_analysis(), executable.cost_analysis()
    return {
        "memory": {
            "arguments": memory.argument_size_in_bytes,
            "outputs": memory.output_size_in_bytes,
            "aliased": memory.alias_size_in_bytes,
            "temporaries": memory.temp_size_in_bytes,
            "code": memory.generated_code_size_in_bytes,
        },
        "flops": cost.get("flops"),
        "bytes_accessed": cost.get("bytes accessed"),
    }


if __name__ == "__main__":
    main(sys.argv[1])
