"""Lowers a replica's step to a StableHLO module, by XLA on the CPU.

The public TensorFlow cannot lower for a TPU, but its program for a CPU is the same.
"""

from __future__ import annotations

import math
import mmap
import re
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from tpu_estimator_compat.engine.functions import eager, functions
from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.jax.lowering import random_state
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.engine.jax.lowering.random_state import RandomState
from tpu_estimator_compat.engine.jax.lowering.replica_step import ReplicaStep
from tpu_estimator_compat.engine.jax.lowering.step_module import RANDOM_STATE, Array, StepModule

_NOT_CONSTANT = re.compile(
    r"Input \d+ to node `([^`]+)` with op \w+ must be a compile-time constant"
)
_ADVICE = {
    "must be a compile-time constant": "give shapes, sizes and axes as Python numbers",
    "fixed tensor list size": "give tf.while_loop a constant maximum_iterations",
}
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_NO_SHAPES: Mapping[Key, Sequence[int]] = {}
_SMALL = 2**20  # bytes: smaller variables have memory of their own


class LoweringError(Exception):
    """XLA refuses the step, for the ops named `nodes`.

    `not_constant` says that an op lacks a value that must be known at compile time.
    """

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message
        not_constant = _NOT_CONSTANT.findall(message)
        self.not_constant = bool(not_constant)
        self.nodes = list(dict.fromkeys(not_constant or _NODE.findall(message)))

    @property
    def advice(self) -> str:
        """The code to write instead; empty where none is known."""
        return next((text for words, text in _ADVICE.items() if words in self.message), "")

    @property
    def first_line(self) -> str:
        return self.message.removeprefix("Failed getting HLO text: '").splitlines()[0]


def refusals(error: LoweringError, graph: tf.Graph) -> list[Finding]:
    """A finding for each operation that XLA's error names; a general one if it names none."""
    if not error.nodes:
        return [Finding(Severity.MIGHT, Kind.COMPILER, f"XLA does not lower it: {error.message}")]
    kind = Kind.NOT_CONSTANT if error.not_constant else Kind.UNSUPPORTED_OP
    names = sources.Sources(graph)
    findings = []
    for name in error.nodes:
        op = names.find(name)
        message = f"XLA refuses it: {error.first_line}"
        where = (op.type, op.name, sources.of_operation(op)) if op else ("", name, None)
        findings.append(Finding(Severity.FAILS, kind, message, error.advice, *where))
    return findings


def lower(step: ReplicaStep, shapes: Mapping[Key, Sequence[int]] = _NO_SHAPES) -> StepModule:
    """The step as a StableHLO module; raises LoweringError.

    No variable gets memory: a step may be lowered on a machine that could not run it. The step must
    have no resources besides variables; `shapes` are of feeds without static shapes.
    """
    with eager.eager_mode(), tf.device("/cpu:0"):
        handles = {
            op.name: (tf.TensorShape(op.get_attr("shape")), tf.as_dtype(op.get_attr("dtype")))
            for op in step.variables
        }
        largest = max((s.num_elements() * t.size for s, t in handles.values()), default=0)
        untouched = Untouched(largest)
        variables = {name: untouched.variable(*handle) for name, handle in handles.items()}
        variables[RANDOM_STATE] = tf.Variable(tf.zeros(random_state.SHAPE, random_state.DTYPE))
        drawing = RandomState(variables[RANDOM_STATE].handle)
        specs = [tf.TensorSpec(shapes.get(key(t), t.shape), t.dtype) for t in step.feeds]

        def call(*values: tf.Tensor) -> list[tf.Tensor]:
            results = step.program(values, lambda op: variables[op.name].handle, drawing)
            # XLA leaves constants out of a module's results.
            return [gen_xla_ops.xla_optimization_barrier([r])[0] for r in results]

        function: Any = functions.function(call, jit_compile=True, input_signature=specs)
        try:
            concrete = function.get_concrete_function()
            ir = function.experimental_get_compiler_ir(*specs)
            # As text: only neighbouring releases of MLIR read its bytecode.
            code = ir(stage="stablehlo", platform_name="CPU").encode()
        except (ValueError, tf.errors.OpError) as error:
            raise LoweringError(str(error)) from None
        names = {id(variable.handle): name for name, variable in variables.items()}
        order = [names[id(handle)] for handle in concrete.captured_inputs]
        return StepModule(
            code,
            tuple(map(_array, specs)),
            {name: _array(variables[name]) for name in order},
            tuple(t.name for t in step.program.fetches),
        )


def _array(described: Any) -> Array:
    # as_list(): with TF1's behaviour, a shape consists of Dimensions.
    return Array(tuple(described.shape.as_list()), np.dtype(described.dtype.as_numpy_dtype))


class Untouched:
    """Makes variables of at most `largest` bytes, whose values must not be read.

    XLA reads only shapes and types. So large values take no memory: all map the same sparse file,
    of which no page is ever read.
    """

    def __init__(self, largest: int):
        self._bytes: Any = b""
        if largest > _SMALL:
            with tempfile.TemporaryFile() as file:
                file.truncate(largest)
                self._bytes = mmap.mmap(file.fileno(), largest)

    def variable(self, shape: tf.TensorShape, dtype: tf.DType) -> tf.Variable:
        dims = shape.as_list()
        if math.prod(dims) * dtype.size <= _SMALL or dtype == tf.bool:
            return tf.Variable(lambda: tf.raw_ops.Empty(shape=dims, dtype=dtype, init=False))
        # Numbers of these widths pass from NumPy without a copy; others have the same bits.
        width = {1: np.uint8, 2: np.uint16, 4: np.float32, 8: np.float64, 16: np.complex128}
        numbers: Any = np.frombuffer(self._bytes, width[dtype.size], count=math.prod(dims))
        shared = tf.experimental.dlpack.from_dlpack(numbers.reshape(dims).__dlpack__())
        value = shared if shared.dtype == dtype else tf.bitcast(shared, dtype)
        return tf.Variable(lambda: value)
