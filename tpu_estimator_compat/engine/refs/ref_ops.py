"""Operations that take refs: the inputs that are refs, and the twins on resource variables."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Container
from typing import Any

from tpu_estimator_compat.tf_internals import op_def_registry

VARIABLES = frozenset({"Variable", "VariableV2"})
CONTROL_FLOW = frozenset({"RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefNextIteration"})
"""Operations that pass a ref on."""
PASSED_ON = frozenset(name.removeprefix("Ref") for name in CONTROL_FLOW)
"""Operations that pass a handle on."""
_INITIALIZED = "IsVariableInitialized"
_TWINS = {
    "Assign": "AssignVariableOp",
    "AssignAdd": "AssignAddVariableOp",
    "AssignSub": "AssignSubVariableOp",
    _INITIALIZED: "VarIsInitializedOp",
}


@dataclasses.dataclass(frozen=True)
class RefOp:
    """An operation that takes refs.

    Attributes:
      places: indices of its inputs that are refs.
      outputs: indices and names of its outputs that are refs.
      twin: the operation that does the same with handles; empty for none.
      attributes: names of the twin's attributes.
      writes: whether it changes the variables.
    """

    places: Container[int]
    outputs: tuple[tuple[int, str], ...]
    twin: str
    attributes: frozenset[str]
    writes: bool

    def takes(self, place: int, node: Any, refs: Container[str]) -> bool:
        """Whether a node takes the input `place` as a ref, and the input is one of `refs`."""
        return place in self.places and node.input[place] in refs


@functools.cache
def ref_op(op_type: str) -> RefOp | None:
    """The RefOp of an operation type; None for types that take no refs, and for functions."""
    definition = op_def_registry.get(op_type)
    if definition is None:
        return None
    places = [i for i, argument in enumerate(definition.input_arg) if argument.is_ref]
    if not places:
        return None
    is_list = definition.input_arg[places[-1]].number_attr
    outputs = tuple((i, a.name) for i, a in enumerate(definition.output_arg) if a.is_ref)
    twin = op_def_registry.get(_TWINS.get(op_type, f"Resource{op_type}"))
    return RefOp(
        places=range(places[-1], sys.maxsize) if is_list else places,
        outputs=outputs,
        twin=twin.name if twin else "",
        attributes=frozenset(a.name for a in twin.attr) if twin else frozenset(),
        writes=op_type != _INITIALIZED,
    )


def needs_ref(op_type: str) -> bool:
    """Whether operations of a type take refs, and none on resource variables do the same."""
    op = ref_op(op_type)
    passes = CONTROL_FLOW | {"RefIdentity", "RefSelect"}
    return op is not None and not op.twin and op_type not in passes
