"""Streams of random ops, which continue from one function to the next.

A random op's kernel keeps the state of its stream, and a TF1 session has one kernel per op. Here
several functions make steps, as hooks and executors demand, each with its own kernels. They would
all begin a seed's stream anew, and dropout would repeat its masks. So ops with a seed whose type is
in `FROM_STATE` draw from a variable that all functions share; others call a kernel that all
functions share (`kernel_session.py`). The variable has Philox's state, as in `tf.random.Generator`:
a counter of 128 bits, low half first, and a key of 64 bits. It begins and advances as in kernels
(`tensorflow/core/util/guarded_philox_random.cc`: the seed is the key, the second seed the upper
half of the counter), so the numbers are the same.
"""

from __future__ import annotations

import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_def import (
    GraphDef,
    NodeDef,
    make_constant,
    set_inputs,
)
from tpu_estimator_compat.engine.step.kernel_session import KernelSession, may_call
from tpu_estimator_compat.tf_internals import context, device_util, resource_variable_ops

FROM_STATE = {
    "RandomUniform": "StatefulUniform",
    "RandomStandardNormal": "StatefulStandardNormalV2",
    "TruncatedNormal": "StatefulTruncatedNormal",
    "RandomUniformInt": "StatefulUniformInt",
}
"""Types of ops that draw from a variable, by the types of the ops whose kernels keep the state."""

ALGORITHM = "random_algorithm"
"""Name of the constant that these ops take besides a state."""

_PHILOX = 1

Stream = tuple[str, int, int, str]
"""An op's name, its seed, its second seed (different on each replica), and its state's device."""


def draw_from(node: NodeDef, state: str, algorithm: str) -> None:
    """Rewrites a node, of a type in `FROM_STATE`, to draw from the inputs of these names."""
    controls = [name for name in node.input if name.startswith("^")]
    inputs = [name for name in node.input if not name.startswith("^")]
    result = "Tout" if node.op == "RandomUniformInt" else "dtype"
    dtype, shape_dtype = node.attr[result].type, node.attr["T"].type
    node.op = FROM_STATE[node.op]
    node.attr.clear()
    node.attr["dtype"].type, node.attr["shape_dtype"].type = dtype, shape_dtype
    set_inputs(node, [state, algorithm, *inputs, *controls])


def add_algorithm(node: NodeDef) -> None:
    """Makes a new node the constant `ALGORITHM`."""
    node.name = ALGORITHM
    make_constant(node, _PHILOX, tf.int64)


class RandomStreams:
    """The streams of a session, one for each op and replica: a `StateRewrite` of its programs.

    Ops without a seed stay unchanged, since each of their kernels begins at random; so do ops in
    branches and loops, and on devices of other processes. As a `traces.Holder`, it names a stream's
    state after its op, seeds and device.
    """

    def __init__(self) -> None:
        self._states: dict[tuple[str, int, int], tuple[str, tf.Variable]] = {}
        self._kernels = KernelSession()

    def applies_to(self, node: NodeDef) -> bool:
        """Whether a node, not one in a function, draws from a variable."""
        return node.op in FROM_STATE and bool(node.attr["seed"].i or node.attr["seed2"].i)

    def apply(self, graph_def: GraphDef) -> tuple[GraphDef, dict[str, tf.Tensor]]:
        """`graph_def` with ops that draw from variables, and their handles, by name of the input.

        Call it in replica context: variables are made on the replica's device.
        """
        if not any(self.applies_to(node) or may_call(node) for node in graph_def.node):
            return graph_def, {}
        changed = tf.compat.v1.GraphDef()
        changed.CopyFrom(graph_def)
        handles = {}
        device = device_util.current()
        is_local = device.startswith(context.context().host_address_space())
        for node in changed.node:
            if self.applies_to(node):
                state = f"{node.name}/random_state"
                handles[f"{state}:0"] = self.handle((node.name, *_seeds(node), device))
                draw_from(node, state, ALGORITHM)
            elif may_call(node) and is_local:
                self._kernels.call_kernel(node, (node.name, *_seeds(node)))
        add_algorithm(changed.node.add())
        return changed, handles

    def handles(self) -> dict[Stream, tf.Tensor]:
        """Handles of all states, by stream."""
        return {(*key, device): state.handle for key, (device, state) in self._states.items()}

    def handle(self, stream: Stream) -> tf.Tensor:
        """The handle of a stream's state, which is made on the stream's device if there is none."""
        name, seed, seed2, device = stream
        key = name, seed, seed2
        if key not in self._states:
            with tf.init_scope(), tf.device(device):
                # Not by tf.Variable: a strategy would make one variable for all replicas.
                state = resource_variable_ops.ResourceVariable(
                    tf.constant([0, seed2, seed], tf.int64), trainable=False, name="random_state"
                )
            self._states[key] = device, state
        return self._states[key][1].handle


def _seeds(node: NodeDef) -> tuple[int, int]:
    return node.attr["seed"].i, node.attr["seed2"].i
