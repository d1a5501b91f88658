"""Operations that take refs: the inputs that are refs, and the twins on resource variables."""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from tpu_estimator_compat.tf_internals import op_def_registry

VARIABLES = frozenset({"Variable", "VariableV2"})
SAME = frozenset(
    {
        *("CheckNumerics", "Copy", "EnsureShape", "GuaranteeConst", "Identity", "IdentityN"),
        *("PlaceholderWithDefault", "PreventGradient", "Print", "StopGradient"),
    }
)
"""Operations whose first output is the first input; of `IdentityN`, each output is its input."""
_ROWS = frozenset({"Slice", "Split", "SplitV", "StridedSlice", "Unpack"})
_ALL = frozenset(
    {
        *("AddN", "Bitcast", "BroadcastTo", "ExpandDims", "Max", "Mean", "Min", "MirrorPad"),
        *("Pack", "Pad", "PadV2", "Prod", "Reshape", "Squeeze", "Sum", "Tile", "Transpose"),
    }
)
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
      outputs: indices of its outputs that are refs.
      twin: the operation that does the same with handles; empty for none.
      attributes: names of the twin's attributes.
      writes: whether it changes the variables.
    """

    places: list[int]
    outputs: list[int]
    twin: str
    attributes: frozenset[str]
    writes: bool


@functools.cache
def ref_op(op_type: str) -> RefOp | None:
    """The RefOp of an operation type; None for types that take no refs, and for functions."""
    definition = op_def_registry.get(op_type)
    if definition is None:
        return None
    places = [i for i, argument in enumerate(definition.input_arg) if argument.is_ref]
    if not places:
        return None
    twin = op_def_registry.get(_TWINS.get(op_type, f"Resource{op_type}"))
    return RefOp(
        places=places,
        outputs=[i for i, argument in enumerate(definition.output_arg) if argument.is_ref],
        twin=twin.name if twin else "",
        attributes=frozenset(a.name for a in twin.attr) if twin else frozenset(),
        writes=op_type != _INITIALIZED,
    )


def needs_ref(op_type: str) -> bool:
    """Whether operations of a type take refs, and none on resource variables do the same."""
    op = ref_op(op_type)
    return op is not None and not op.twin and op_type != "RefIdentity"


def may_share(op: tf.Operation) -> bool:
    """Whether outputs of `op` share an input's memory for some arguments: parts, other shapes."""
    if op.type not in _ALL:
        return op.type in _ROWS
    sizes = {t.shape.num_elements() for t in (op.inputs[0], op.outputs[0])}
    several = op.type in ("AddN", "Pack") and len(op.inputs) > 1
    return not several and (len(sizes) == 1 or None in sizes or op.type == "Bitcast")
