"""From a planned step to a StableHLO module, by XLA on the CPU.

The public TensorFlow cannot lower for a TPU, but what it lowers for a CPU is the same program.
"""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.preflight.planned import PlannedStep
from tpu_estimator_compat.preflight.untouched import Untouched
from tpu_estimator_compat.runtime import eager, functions

_NOT_CONSTANT = re.compile(
    r"Input \d+ to node `([^`]+)` with op \w+ must be a compile-time constant"
)
_ADVICE = {
    "must be a compile-time constant": "give shapes, sizes and axes as Python numbers",
    "fixed tensor list size": "give tf.while_loop a constant maximum_iterations",
}
"""What to write instead, by XLA's words."""
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")


class LoweringError(Exception):
    """XLA refuses the step.

    Args:
      message: its words.

    Attributes:
      message: its words.
      nodes: names of the ops that it names, as far as they are to be found in its words.
      not_constant: whether an op lacks a value that has to be known in advance.
    """

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message
        not_constant = _NOT_CONSTANT.findall(message)
        self.not_constant = bool(not_constant)
        self.nodes = list(dict.fromkeys(not_constant or _NODE.findall(message)))

    @property
    def advice(self) -> str:
        """What to write instead; empty where nothing is known."""
        return next((text for words, text in _ADVICE.items() if words in self.message), "")

    @property
    def first_line(self) -> str:
        """Its words without stack traces."""
        return self.message.removeprefix("Failed getting HLO text: '").splitlines()[0]


def lower(step: PlannedStep) -> bytes:
    """The step as a serialized StableHLO module.

    No variable gets memory: a step may be lowered on a machine that could not run it.

    Args:
      step: the step; its input has static shapes, and it has no resources besides variables.

    Raises:
      LoweringError: XLA refuses it.
    """
    with eager.eager_mode(), tf.device("/cpu:0"):
        shapes = {op.name: tf.TensorShape(op.get_attr("shape")) for op in step.variables}
        types = {op.name: tf.as_dtype(op.get_attr("dtype")) for op in step.variables}
        largest = max((s.num_elements() * types[n].size for n, s in shapes.items()), default=0)
        untouched = Untouched(largest)
        variables = {name: untouched.variable(s, types[name]) for name, s in shapes.items()}
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in step.feeds]

        def call(*values: tf.Tensor) -> list[tf.Tensor]:
            return step.program(values, lambda op: variables[op.name].handle)

        function: Any = functions.function(call, jit_compile=True, input_signature=specs)
        try:
            ir = function.experimental_get_compiler_ir(*specs)
            return bytes(ir(stage="stablehlo_serialized", platform_name="CPU"))
        except (ValueError, tf.errors.OpError) as error:
            raise LoweringError(str(error)) from None
