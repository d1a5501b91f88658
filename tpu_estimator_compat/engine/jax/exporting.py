"""Exports a step to a file that JAX can run on another machine, without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
from jax._src.interpreters.mlir import module_to_bytecode
from jax.extend.mlir import ir
from jax.interpreters import mlir

from tpu_estimator_compat.engine.jax import meshes
from tpu_estimator_compat.engine.jax.lowering.step_module import StepModule
from tpu_estimator_compat.engine.jax.module import operations
from tpu_estimator_compat.engine.jax.step_function import StepFunction

_PRODUCTS = {"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"}
_HIGHEST = "#stablehlo<precision HIGHEST>"


def precise(step: StepModule) -> StepModule:
    """The same step with full float32 products, where chips round their inputs by default."""
    with mlir.make_ir_context():
        module = ir.Module.parse(step.code)
        both = ir.Attribute.parse(f"[{_HIGHEST}, {_HIGHEST}]")
        for operation in operations(module.operation):
            if operation.name in _PRODUCTS:
                operation.attributes["precision_config"] = both
        return dataclasses.replace(step, code=module_to_bytecode(module))


def exported(step: StepModule, most: int, loss: int | None, platforms: Sequence[str]) -> bytes:
    """The function of up to `most` steps on one device, as `jax.export.deserialize` reads it.

    It takes the variables, the feeds [most, ...], and int64 [steps, key, position]: see
    `Placed`. Call it with 64-bit types enabled. `platforms` are "cpu", "cuda", "tpu".
    """
    from jax import export

    mesh = meshes.mesh((jax.devices("cpu")[0],), 1)
    made: Any = StepFunction(step, mesh, most, loss)
    with jax.enable_x64(True):
        found = export.export(made.function, platforms=list(platforms))(*made.shapes())
        return bytes(found.serialize())
