"""Makes a lowered step an operation of JAX. No TensorFlow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import func
from jax.interpreters import mlir

from tpu_estimator_compat.engine.jax.lowering.step_module import PREFIX, StepModule
from tpu_estimator_compat.engine.jax.meshes import REPLICA

_ALIASES = "mhlo.input_output_alias"


class DynamicShapeError(NotImplementedError):
    """A step has values whose shapes depend on data, which JAX does not compile."""


class ParsedModule:
    """A step's module, and the shapes, dtypes and aliases that JAX needs.

    Args:
      positions: the devices' positions in the mesh, [replicas, devices of a replica].

    Attributes:
      results: shapes and dtypes of the results.
      updates: index of the variable by index of the result that is its new value.
    """

    def __init__(self, step: StepModule, positions: np.ndarray):
        self.step, self.positions = step, positions
        with mlir.make_ir_context():
            module = _parse(step.code)
            [main] = [op for op in module.body.operations if op.sym_name.value == "main"]
            self.results = [_abstract(t) for t in main.type.results]
            given = [_abstract(t) for t in main.type.inputs]
            wanted = [(a.shape, a.dtype) for a in [*step.feeds, *step.variables.values()]]
            if [(a.shape, a.dtype) for a in given] != wanted:
                raise AssertionError(f"The module takes {given}, and the step gives {wanted}.")
            aliases = module.operation.attributes.get(_ALIASES, ())
            self.updates = dict(self._update(ir.DictAttr(alias)) for alias in aliases)
        if len(self.results) - len(self.updates) != len(step.fetches):
            raise AssertionError(
                f"The module returns {len(self.results)} values, {len(self.updates)} of them "
                f"variables, for {len(step.fetches)} fetches."
            )

    def _update(self, alias: Any) -> tuple[int, int]:
        [result] = list(ir.DenseI64ArrayAttr(alias["output_index"]))
        argument = ir.IntegerAttr(ir.DictAttr(alias["alias"])["parameter_number"]).value
        return result, argument - len(self.step.feeds)

    @property
    def fetched(self) -> list[Any]:
        return [a for i, a in enumerate(self.results) if i not in self.updates]

    def __call__(
        self, feeds: Sequence[jax.Array], variables: Sequence[jax.Array]
    ) -> tuple[list[jax.Array], list[jax.Array]]:
        """Traces one step on one device; returns the fetches, and all variables after the step."""
        replica = jax.lax.axis_index(REPLICA).astype(np.uint32)
        results = _step.bind(*feeds, *variables, replica, module=self)
        after = list(variables)
        for result, variable in self.updates.items():
            after[variable] = results[result]
        return [r for i, r in enumerate(results) if i not in self.updates], after


def _parse(code: bytes) -> Any:
    try:
        module = ir.Module.parse(code)
    except ir.MLIRError as error:
        if "mhlo.unknown" in str(error):  # not StableHLO, such as reshapes to a dynamic shape
            raise DynamicShapeError(str(error)) from None
        raise
    for operation in operations(module.operation):
        for result in operation.results:
            if isinstance(result.type, ir.RankedTensorType) and not result.type.has_static_shape:
                raise DynamicShapeError(f"{operation.name} gives a {result.type}.")
    return module


_step = core.Primitive("tensorflow_step")
_step.multiple_results = True


@_step.def_abstract_eval
def _results_of(*arguments: Any, module: ParsedModule) -> list[Any]:
    del arguments
    return module.results


def _lower(ctx: Any, *arguments: ir.Value, module: ParsedModule) -> list[ir.Value]:
    context = ctx.module_context
    with context.module.context:
        called = ir.Module.parse(module.step.code)
        legalize(called, module.positions)
        if not _takes_replica(called):
            arguments = arguments[:-1]
        for attribute in list(called.operation.attributes):
            del called.operation.attributes[getattr(attribute, "name", attribute)]
        name = mlir.merge_mlir_modules(
            context.module, "tensorflow_step", called, dst_symtab=context.symbol_table
        )
    types = [t for a in ctx.avals_out for t in mlir.aval_to_ir_types(context, a)]
    return list(func.CallOp(types, ir.FlatSymbolRefAttr.get(name), arguments).results)


mlir.register_lowering(_step, _lower)


_DTYPES = {
    "i1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}
"""Names of dtypes by StableHLO's names."""


def _abstract(described: Any) -> Any:
    tensor = ir.RankedTensorType(described)
    name = str(tensor.element_type)
    if name not in _DTYPES:
        raise NotImplementedError(f"The step has values of type {name}, which JAX does not have.")
    return jax.core.ShapedArray(tuple(tensor.shape), jax.numpy.dtype(_DTYPES[name]))


def legalize(module: Any, positions: np.ndarray) -> None:
    """Replaces, in place, ops that TensorFlow's lowering makes and other compilers do not know.

    TensorFlow writes collectives of XLA's replicas; JAX's devices are partitions of one of them.
    With a channel and global ids, a group names partitions, which are positions in the mesh. A
    device exchanges values with the devices at its position in other replicas.
    """
    for operation in list(operations(module.operation)):
        if operation.name == "mhlo.copy":  # only says where a value lies
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
        elif operation.name == "mhlo.erf":
            _replace(operation, "chlo.erf", {})
        elif operation.name == "stablehlo.all_reduce":
            operation.attributes["channel_handle"] = _channel()
            operation.attributes["use_global_device_ids"] = ir.UnitAttr.get()
            groups = np.array(ir.DenseElementsAttr(operation.attributes["replica_groups"]))
            everyone = np.arange(len(positions))[None]
            placed = _placed(groups if groups.size else everyone, positions)
            operation.attributes["replica_groups"] = _matrix(placed)
        elif operation.name == "stablehlo.custom_call":
            target = ir.StringAttr(operation.attributes["call_target_name"]).value
            if target.startswith(PREFIX):
                _replace_marker(operation, target.removeprefix(PREFIX), positions)


def _takes_replica(module: Any) -> bool:
    """Replaces `replica_id` by a new last argument of `main`; returns whether `main` uses it.

    JAX's devices are partitions of one XLA replica: each would read 0.
    """
    if not _of_type(module.operation, "stablehlo.replica_id"):
        return False
    # Branches and loops call functions, which lack the argument.
    passmanager.PassManager.parse("builtin.module(inline)").run(module.operation)
    [main] = [op for op in module.body.operations if op.sym_name.value == "main"]
    asking = _of_type(main.operation, "stablehlo.replica_id")
    type_ = asking[0].results[0].type
    number = main.entry_block.add_argument(type_, ir.Location.unknown())
    given = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    taken = ir.FunctionType.get([*given.inputs, type_], given.results)
    main.attributes["function_type"] = ir.TypeAttr.get(taken)
    if "arg_attrs" in main.attributes:
        attributes = [*ir.ArrayAttr(main.attributes["arg_attrs"]), ir.DictAttr.get({})]
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
    for operation in asking:
        operation.results[0].replace_all_uses_with(number)
        operation.erase()
    return True


def _of_type(operation: ir.Operation, name: str) -> list[Any]:
    return [op for op in operations(operation) if op.name == name]


def operations(operation: ir.Operation) -> Iterator[ir.Operation]:
    for region in operation.regions:
        for block in region:
            for child in block:
                yield child.operation
                yield from operations(child.operation)


def _placed(replicas: Any, positions: np.ndarray) -> list[list[int]]:
    """Groups of mesh positions from groups of replicas: one group per device of a replica."""
    return [group.tolist() for row in replicas for group in positions[np.asarray(row)].T]


def _replace_marker(operation: ir.Operation, name: str, positions: np.ndarray) -> None:
    """Turns a custom call that stands for a collective into the StableHLO op `name`.

    Its `backend_config` is JSON: the attributes of the op, integers or matrices.
    """
    config = json.loads(ir.StringAttr(operation.attributes["backend_config"]).value)
    int64 = ir.IntegerType.get_signless(64)
    attributes = {
        name: ir.IntegerAttr.get(int64, value)
        if isinstance(value, int)
        else _matrix(_placed(value, positions))
        for name, value in config.items()
    }
    _replace(operation, "stablehlo." + name, attributes | {"channel_handle": _channel()})


def _channel() -> ir.Attribute:
    return ir.Attribute.parse("#stablehlo.channel_handle<handle = 1, type = 1>")


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
