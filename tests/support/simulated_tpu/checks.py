"""What a TPU would refuse of a replicated computation, before it runs."""

import functools
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.framework import kernels, ops
from tensorflow.python.ops import resource_variable_ops

from support.simulated_tpu.devices import tpu_name
from support.simulated_tpu.rewrite import (
    EXCHANGES,
    OF_THE_REWRITE,
    Expansion,
    called_bodies,
    cluster_of,
    definition,
    groups_of,
)
from tpu_estimator_compat.engine.functions.functions import register_functions
from tpu_estimator_compat.engine.graph import graph_def
from tpu_estimator_compat.engine.jax.lowering import xla_collectives
from tpu_estimator_compat.engine.jax.lowering.step_module import Array, StepModule
from tpu_estimator_compat.environment import has_xla_for_cpu

_HERE = "/job:localhost/replica:0/task:0/device:CPU:0"


def check(expansion: Expansion, *, moves_to_host: bool) -> None:
    """Notes in the cluster what cores cannot do.

    Args:
      expansion: the computation.
      moves_to_host: whether ops without a kernel run on the host; else they are problems.
    """
    for op in expansion.ops:
        if op.name not in expansion.host_ops:
            _check_kernel(expansion, op, moves_to_host)
    expansion.cluster.on_host |= {op.type for op in expansion.ops if op.name in expansion.host_ops}
    for op in expansion.ops:
        if op.name in expansion.host_ops:
            _check_on_host(expansion, op)
        else:
            _check_inputs(expansion, op)
        if op.type in ("CrossReplicaSum", "AllToAll"):
            _check_groups(expansion, op)


def _check_kernel(expansion: Expansion, op: tf.Operation, moves_to_host: bool) -> None:
    if op.type in OF_THE_REWRITE or op.type in EXCHANGES:
        return
    known = _xla_ops() if has_xla_for_cpu() else None  # tensorflow-tpu does not tell
    kinds = [op.type, *_types_of_functions(op)]
    missing = [kind for kind in kinds if known is not None and kind not in known]
    strings = [t for t in (*op.inputs, *op.outputs) if t.dtype == tf.string]
    if not missing and not strings:
        return
    if moves_to_host:
        expansion.host_ops.add(op.name)
    elif missing:
        _problem(expansion, f"{op.name}: op {', '.join(missing)} has no kernel for XLA_TPU_JIT")
    else:
        _problem(expansion, f"{op.name} ({op.type}): has strings, which no core has")


@functools.cache
def _xla_ops() -> frozenset[str]:
    """What XLA has kernels for; the public TensorFlow knows those for its CPU."""
    tiny = tf.function(lambda x: x + 1, jit_compile=True)  # kernels are registered by the first use
    with ops.init_scope(), tf.device(_HERE):
        tiny(tf.zeros([2]))
    found = kernels.get_all_registered_kernels().kernel
    return frozenset(kernel.op for kernel in found if kernel.device_type == "XLA_CPU_JIT")


def _types_of_functions(op: tf.Operation) -> list[str]:
    return [
        node.op
        for body in called_bodies(op.graph, [op.node_def])
        for node in body.node_def
        if node.op not in EXCHANGES and definition(op.graph, node.op) is None
    ]


def _check_inputs(expansion: Expansion, op: tf.Operation) -> None:
    for tensor in op.inputs:
        if cluster_of(tensor.op):
            if tensor.op.name in expansion.host_ops and not tensor.shape.is_fully_defined():
                _problem(
                    expansion,
                    f"{op.name}: what {tensor.op.name} makes on the host has no static shape",
                )
            continue
        pack = expansion.pack(tensor)
        source = expansion.source(tensor)
        name = getattr(source, "name", source)
        if tensor.dtype == tf.resource and pack is None:
            _problem(
                expansion,
                f"{op.name} ({op.type}): takes {name}, a resource of the host, into a TPU "
                "computation",
            )
        elif tensor.dtype in (tf.string, tf.variant):
            _problem(
                expansion,
                f"{op.name} ({op.type}): takes {name} of {tensor.dtype.name} into a TPU "
                "computation",
            )
        elif tensor.dtype != tf.resource and not tensor.shape.is_fully_defined():
            _problem(expansion, f"{op.name}: input {name} has no static shape: {tensor.shape}")
        for part in pack or ():
            device = str(getattr(part, "device", ""))
            if device and tpu_name(device) is None:
                _problem(
                    expansion, f"{op.name}: variable {part.name} is on {device}, not on a core"
                )


def _check_on_host(expansion: Expansion, op: tf.Operation) -> None:
    for tensor in op.inputs:
        if expansion.pack(tensor) is not None:
            _problem(
                expansion,
                f"{op.name} ({op.type}): runs on the host, and takes the variable {tensor.name} of "
                "the cores",
            )


def _check_groups(expansion: Expansion, op: tf.Operation) -> None:
    groups, replicas = groups_of(op, expansion.replicas), range(expansion.replicas)
    if sorted(replica for group in groups for replica in group) != list(replicas):
        _problem(
            expansion,
            f"{op.name}: replica groups {groups} do not name each of {len(replicas)} replicas once",
        )


def _problem(expansion: Expansion, words: str) -> None:
    if words not in expansion.cluster.problems:
        expansion.cluster.problems.append(words)


def compile(expansion: Expansion) -> None:
    """Lets XLA compile one replica: what must be known in advance, and what it cannot do, comes up.

    Exchanges are those that `preflight` gives to the TPU's own compiler.
    """
    cluster, program = expansion.cluster, expansion.program
    inside = [
        op
        for op in expansion.ops
        if op.name not in expansion.host_ops and op.type != "TPUReplicateMetadata"
    ]
    names = {op.name for op in inside}
    feeds = {t.name: t for op in inside for t in op.inputs if t.op.name not in names}
    used = {t.name for op in program.get_operations() if op.name not in names for t in op.inputs}
    fetches = [t for op in inside for t in op.outputs if t.name in used and t.dtype != tf.resource]
    effects = [op.name for op in inside if not op.outputs or op.op_def.is_stateful]
    rewrites = xla_collectives.rewrites(program, cluster.replicas)
    pruned = graph_def.subgraph_def(program, inside, rewrites=rewrites)
    for node in pruned.node:
        node.attr.pop("_tpu_replicate", None)
    register_functions(pruned)
    given = [t for t in feeds.values() if t.dtype != tf.resource]
    if cluster.problems or any(t.dtype in (tf.string, tf.variant) for t in given):
        return  # said already

    with ops.init_scope(), tf.device(_HERE):
        variables = _variables(expansion, feeds)
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in given]

        def step(*values: Any) -> list[Any]:
            graph = ops.get_default_graph()
            mapped = {t.name: value for t, value in zip(given, values, strict=True)}
            mapped |= {name: graph.capture(v.handle) for name, v in variables.items()}
            returned = tf.graph_util.import_graph_def(
                pruned,
                input_map=mapped,
                return_elements=[t.name for t in fetches] + effects,
                name="",
            )
            done = [x if isinstance(x, tf.Operation) else x.op for x in returned]
            with tf.control_dependencies(done):
                # XLA leaves constants out of a module's results.
                return [
                    gen_xla_ops.xla_optimization_barrier([x])[0] for x in returned[: len(fetches)]
                ]

        function = tf.function(step, autograph=False, jit_compile=True, input_signature=specs)
        try:
            concrete = function.get_concrete_function()
            ir = function.experimental_get_compiler_ir(*specs)
            code = bytes(ir(stage="stablehlo_serialized", platform_name="CPU"))
            handles = {id(v.handle): name for name, v in variables.items()}
            taken = [handles[id(handle)] for handle in concrete.captured_inputs]
            cluster.module = StepModule(
                code,
                tuple(map(_array, specs)),
                {name: _array(variables[name]) for name in taken},
                tuple(t.name for t in fetches),
            )
        except (ValueError, TypeError, tf.errors.OpError) as error:
            _problem(expansion, f"XLA: {type(error).__name__}: {str(error)[:1500]}")


def _array(described: Any) -> Array:
    return Array(tuple(described.shape.as_list()), np.dtype(described.dtype.as_numpy_dtype))


def _variables(expansion: Expansion, feeds: dict[str, tf.Tensor]) -> dict[str, Any]:
    found = {}
    for name, tensor in feeds.items():
        if tensor.dtype == tf.resource:
            part = (expansion.pack(tensor) or [None])[0]
            if part is None:
                raise AssertionError(f"{name}: a resource that no check has named")
            zeros = tf.zeros(part.shape, part.dtype)
            found[name] = resource_variable_ops.ResourceVariable(zeros, trainable=False)
    return found
