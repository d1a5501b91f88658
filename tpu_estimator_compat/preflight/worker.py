"""Compiles a StableHLO module with the TPU's compiler: a script for a process of its own.

`python -P worker.py REQUEST` reads a JSON file and writes another; `compiler.py` starts it. libtpu
aborts the process on some programs, and its libraries are not to meet TensorFlow's in one process,
so this file imports neither TensorFlow nor other modules of this package.

The request:
  program: path of the module, as text or bytecode.
  topology: libtpu's name, such as "v5e:2x2"; chip_config: libtpu's name, or empty.
  replicas: how many of the topology's devices run the program.
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

import json
import pathlib
import shutil
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
from jax.experimental import topologies
from jax.extend import backend
from jax.extend.mlir import ir
from jax.interpreters import mlir
from jaxlib import xla_client

_MARKER = "tpu_estimator_compat."


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
    options = {"chip_config_name": request["chip_config"]} if request["chip_config"] else {}
    topology: Any = topologies.get_topology_desc(
        platform="tpu", topology_name=request["topology"], **options
    )
    devices = tuple(topology.devices[: request["replicas"]])
    compiler = " ".join(devices[0].client.platform_version.split())
    (directory / "stage").write_text("compile")
    try:
        executable = _compile(request["program"], devices, str(directory / "dump"))
    except ir.MLIRError as error:
        return {"compiler": compiler, "not_expressed": str(error)}
    except RuntimeError as error:
        return {"compiler": compiler, "refused": str(error)}
    return {"compiler": compiler, **_figures(executable)}


def _compile(program: str, devices: tuple[Any, ...], dump: str) -> Any:
    """The executable of the program on `devices`, one replica each.

    Straight through the client of the devices, with the module as it is. The public way, a
    primitive with this lowering under `jax.jit(...).lower(lowering_platforms=('tpu',)).compile()`,
    makes partitions of one replica: there libtpu aborts on a sum across replicas, and the module's
    own aliases of inputs and outputs are lost.
    """
    overrides: dict[str, Any] = {"xla_dump_to": dump, "xla_dump_hlo_as_text": True}
    options = backend.get_compile_options(
        num_replicas=len(devices),
        num_partitions=1,
        device_assignment=np.array([[device.id] for device in devices]),
        env_options_overrides=overrides,
    )
    with mlir.make_ir_context():
        module = ir.Module.parse(pathlib.Path(program).read_bytes())
        for operation in list(_operations(module.operation)):
            _legalize(operation)
        module.operation.verify()
        return devices[0].client.compile(
            module,
            executable_devices=xla_client.DeviceList(devices),
            compile_options=options,
        )


def _operations(operation: ir.Operation) -> Iterator[ir.Operation]:
    for region in operation.regions:
        for block in region:
            for child in block:
                yield child.operation
                yield from _operations(child.operation)


def _legalize(operation: ir.Operation) -> None:
    """Replaces what TensorFlow's lowering leaves and TPUs' refuses, in place."""
    if operation.name == "mhlo.copy":  # says where a value is, not what
        operation.results[0].replace_all_uses_with(operation.operands[0])
        operation.erase()
    elif operation.name == "mhlo.erf":
        _replace(operation, "chlo.erf", {})
    elif operation.name == "stablehlo.custom_call":
        target = ir.StringAttr(operation.attributes["call_target_name"]).value
        if target.startswith(_MARKER):
            _replace_marker(operation, target.removeprefix(_MARKER))


def _replace_marker(operation: ir.Operation, kind: str) -> None:
    """Turns the custom call that stands for a collective without a CPU kernel into that collective.

    Its `backend_config` is JSON: the attributes of StableHLO's op `kind`, integers or matrices.
    """
    config = json.loads(ir.StringAttr(operation.attributes["backend_config"]).value)
    int64 = ir.IntegerType.get_signless(64)
    attributes = {
        name: ir.IntegerAttr.get(int64, value) if isinstance(value, int) else _matrix(value)
        for name, value in config.items()
    }
    _replace(operation, "stablehlo." + kind, attributes)


def _matrix(rows: list[list[int]]) -> ir.Attribute:
    elements: Any = np.asarray(rows, np.int64).reshape(len(rows), -1)
    return ir.DenseElementsAttr.get(elements)


def _replace(operation: ir.Operation, name: str, attributes: dict[str, ir.Attribute]) -> None:
    with ir.InsertionPoint(operation), operation.location:
        new = ir.Operation.create(
            name,
            results=[operation.results[0].type],
            operands=[operation.operands[0]],
            attributes=attributes,
        )
    operation.results[0].replace_all_uses_with(new.results[0])
    operation.erase()


def _figures(executable: Any) -> dict[str, Any]:
    memory, cost = executable.get_compiled_memory_stats(), executable.cost_analysis()
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
