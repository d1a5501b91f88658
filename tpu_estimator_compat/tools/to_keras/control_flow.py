"""Branches and loops as sections of a graph: TensorFlow 1's switches and frames, and functions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf


@dataclasses.dataclass
class Section:
    """What a branch, a loop's condition or its body computes.

    Attributes:
      inputs: the tensors that stand for what the branch or loop is given; None for one unused.
    """

    graph: tf.Graph
    inputs: list[tf.Tensor | None]
    outputs: list[tf.Tensor]

    def keeps(self, index: int) -> bool:
        """Whether it gives an input back as it was."""
        given = self.inputs[index]
        return given is not None and _origin(self.outputs[index]) is _origin(given)


def _origin(tensor: tf.Tensor) -> tf.Tensor:
    """The tensor before identities."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


class Frame:
    """A loop that TensorFlow 1 wrote into the graph, by one of its `Exit` operations."""

    def __init__(self, exit_op: tf.Operation):
        graph, merge = exit_op.graph, exit_op.inputs[0].op.inputs[0].op
        enter = next(tensor.op for tensor in merge.inputs if tensor.op.type == "Enter")
        name = enter.get_attr("frame_name")
        enters = [op for op in graph.get_operations() if op.type == "Enter"]
        enters = [op for op in enters if op.get_attr("frame_name") == name]
        changed = [op for op in enters if not op.get_attr("is_constant")]
        same = [op.outputs[0] for op in enters if op.get_attr("is_constant")]
        merges = [_consumer(op, "Merge") for op in changed]
        switches = [_consumer(merge, "Switch") for merge in merges]
        steps = [next(t.op for t in m.inputs if t.op.type == "NextIteration") for m in merges]
        self.name = name.decode()
        self.index = [switch.outputs[0] for switch in switches].index(exit_op.inputs[0])
        self.given = [op.inputs[0] for op in [*changed, *(t.op for t in same)]]
        condition = switches[0].inputs[1].op.inputs[0]
        before, after = [m.outputs[0] for m in merges], [s.outputs[1] for s in switches]
        self.sections = {
            "cond": Section(graph, [*before, *same], [condition]),
            "body": Section(graph, [*after, *same], [*(s.inputs[0] for s in steps), *same]),
        }


def _consumer(op: tf.Operation, kind: str) -> tf.Operation:
    return next(user for user in op.outputs[0].consumers() if user.type == kind)


class Branch:
    """A value of `tf.cond` that TensorFlow 1 wrote into the graph, by its `Merge` operation."""

    def __init__(self, merge: tf.Operation):
        sides = list(merge.inputs)  # if false, if true
        self.condition = next(s for t in sides for s in _switches_of(t, None)).inputs[1]
        found: dict[Any, dict[int, tf.Tensor]] = {}
        for side, tensor in enumerate(sides):
            for switch in _switches_of(tensor, self.condition):
                found.setdefault(switch.inputs[0].ref(), {})[side] = switch.outputs[side]
        self.given = [ref.deref() for ref in found]
        self.sections = {
            name: Section(merge.graph, [by.get(side) for by in found.values()], [sides[side]])
            for side, name in enumerate(("else_branch", "then_branch"))
        }


def _switches_of(tensor: tf.Tensor, condition: tf.Tensor | None) -> Iterator[tf.Operation]:
    """The switches that a value of a branch comes from; without a condition, of control too."""
    condition = None if condition is None else _origin(condition)
    seen, stack = set(), [tensor.op]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type == "Switch" and (condition is None or _origin(op.inputs[1]) is condition):
            yield op
        elif op.type == "Merge" and condition is None:
            inner = Branch(op)
            stack += [inner.condition.op, *(given.op for given in inner.given)]
        else:
            stack += [each.op for each in op.inputs]
            stack += op.control_inputs if condition is None else []


frame = functools.lru_cache(maxsize=64)(Frame)
branch = functools.lru_cache(maxsize=64)(Branch)
