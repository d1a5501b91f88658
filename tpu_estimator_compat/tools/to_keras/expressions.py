"""Expressions of Keras for operations of TensorFlow: the rules that the table `operations` names.

A rule takes a node and the texts of its inputs, and returns the text of its value; for an operation
with several outputs, the text of a tuple or list.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import SIZES, Code, Node
from tpu_estimator_compat.tools.to_keras.literals import argument, infix, literal, primary

Rule = Callable[[Node, list[str]], str]
SEED = "self.seed_generator"
"""The attribute for a `keras.random.SeedGenerator` that expressions of random numbers use."""


class UnknownOperationError(ValueError):
    """An operation that has no form in Keras."""


def called(name: str, *arguments: str, **options: Any) -> str:
    """`ops.name(arguments, options)`, without options that are None."""
    given = [f"{k}={literal(v)}" for k, v in options.items() if v is not None]
    module = "" if "." in name else "ops."
    return f"{module}{name}({', '.join([*arguments, *given])})"


def function(name: str) -> Rule:
    """A function of Keras that takes the operation's inputs."""
    return lambda node, texts: called(name, *texts)


def operator(operator: str) -> Rule:
    return lambda node, texts: infix(texts[0], operator, texts[1])


def reduction(name: str) -> Rule:
    def rule(node: Node, texts: list[str]) -> str:
        axes, rank = _constant(node, 1), node.inputs[0].rank
        axis: Any = tuple(sorted(int(a) % rank if rank else int(a) for a in np.atleast_1d(axes)))
        keeps = bool(node.attrs.get("keep_dims"))
        if rank is not None and len(axis) == rank and not keeps:
            return called(name, texts[0])
        if len(axis) == 1:
            axis = axis[0] - rank if rank and axis[0] == rank - 1 else axis[0]
        return called(name, texts[0], axis=axis, keepdims=True if keeps else None)

    return rule


def _constant(node: Node, index: int) -> np.ndarray:
    """An input that Keras wants as a Python value."""
    array = node.inputs[index].constant
    if array is None:
        raise UnknownOperationError(f"input {index} is computed; Keras needs a constant")
    return array


def _axis(node: Node, index: int) -> int:
    return int(_constant(node, index))


def cast(node: Node, texts: list[str]) -> str:
    return called("cast", texts[0], literal(node.outputs[0].dtype))


def bias_add(node: Node, texts: list[str]) -> str:
    rank = node.inputs[0].rank
    if node.attrs.get("data_format") == "NCHW" and rank and rank > 2:
        shape = (-1, *[1] * (rank - 2))
        return infix(texts[0], "+", called("reshape", texts[1], literal(shape)))
    return infix(texts[0], "+", texts[1])


def divide(node: Node, texts: list[str]) -> str:
    if "int" in node.inputs[0].dtype:
        raise UnknownOperationError("a division of integers that rounds towards zero")
    return infix(texts[0], "/", texts[1])


def matmul(node: Node, texts: list[str]) -> str:
    sides = []
    for i, names in enumerate((("transpose_a", "adj_x"), ("transpose_b", "adj_y"))):
        turned = any(node.attrs.get(name) for name in names)
        simple = node.inputs[i].rank == 2
        turn = called("transpose", texts[i]) if simple else called("swapaxes", texts[i], "-1", "-2")
        sides.append(turn if turned else texts[i])
    return called("matmul", *sides)


def add_all(node: Node, texts: list[str]) -> str:
    found = texts[0]
    for text in texts[1:]:
        found = infix(found, "+", text)
    return found


def of_arguments(name: str, **places: int) -> Rule:
    """A function of the first input, whose other inputs are arguments by name."""

    def rule(node: Node, texts: list[str]) -> str:
        given = {k: Code(shape(node, i, texts)) for k, i in places.items()}
        return called(name, texts[0], **given)

    return rule


def shape(node: Node, index: int, texts: list[str]) -> str:
    return argument(node.inputs[index], texts[index])


def full(node: Node, texts: list[str]) -> str:
    dtype = node.outputs[0].dtype
    options = {} if dtype == "float32" else {"dtype": dtype}
    return called("full", shape(node, 0, texts), texts[1], **options)


def expand_dims(node: Node, texts: list[str]) -> str:
    return called("expand_dims", texts[0], axis=int(_constant(node, 1).item()))


def reshape(node: Node, texts: list[str]) -> str:
    return called("reshape", texts[0], shape(node, 1, texts))


def size(node: Node, texts: list[str]) -> str:
    return f"ops.shape({texts[0]})[{node.attrs['axis']}]"


def sizes(node: Node, texts: list[str]) -> str:
    left = iter(texts)
    sizes = [next(left) if size is None else str(size) for size in node.attrs["sizes"]]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def squeeze(node: Node, texts: list[str]) -> str:
    axes = tuple(node.attrs["squeeze_dims"])
    return called("squeeze", texts[0], axis=(axes[0] if len(axes) == 1 else axes) if axes else None)


def stack(node: Node, texts: list[str]) -> str:
    return called("stack", f"[{', '.join(texts)}]", axis=node.attrs["axis"] or None)


def concatenate(node: Node, texts: list[str]) -> str:
    return called("concatenate", f"[{', '.join(texts[:-1])}]", axis=_axis(node, -1))


def split(node: Node, texts: list[str]) -> str:
    if node.kind == "Split":
        return called("split", texts[1], str(node.attrs["num_split"]), axis=_axis(node, 0))
    sizes = _constant(node, 1)
    if (sizes < 0).any():
        raise UnknownOperationError("a part's size is what is left over")
    ends = tuple(int(x) for x in np.cumsum(sizes)[:-1])
    return called("split", texts[0], literal(list(ends)), axis=_axis(node, 2))


def unstack(node: Node, texts: list[str]) -> str:
    return called("unstack", texts[0], str(node.attrs["num"]), axis=node.attrs["axis"])


def one_hot(node: Node, texts: list[str]) -> str:
    depth, (on, off) = argument(node.inputs[1], texts[1]), (_constant(node, i) for i in (2, 3))
    axis, dtype = node.attrs.get("axis", -1), node.outputs[0].dtype
    options = {"axis": None if axis == -1 else axis, "dtype": None if dtype == "float32" else dtype}
    made = called("one_hot", texts[0], depth, **options)
    if (on, off) == (1, 0):
        return made
    return infix(literal(off), "+", infix(literal(on - off), "*", made))


def take(node: Node, texts: list[str]) -> str:
    if node.attrs.get("batch_dims"):
        raise UnknownOperationError("it gathers by batch dimensions")
    return called("take", texts[0], texts[1], axis=_axis(node, 2))


def gather_nd(node: Node, texts: list[str]) -> str:
    """Of the first dimensions, as a gather of rows by their number."""
    shape, depth = node.inputs[0].shape, (node.inputs[1].shape or (None,))[-1]
    if shape is None or depth is None or None in shape[1:depth] or depth == 0:
        raise UnknownOperationError("the sizes of the gathered dimensions are not known")
    parts = [f"{primary(texts[1])}[..., {i}]" for i in range(depth)]
    index = parts[0]
    for size, part in zip(shape[1:depth], parts[1:], strict=True):
        index = infix(infix(index, "*", str(size)), "+", part)
    rest = shape[depth:]
    if rest.count(None) > 0:
        raise UnknownOperationError("the sizes of a gathered row are not known")
    given = texts[0] if depth == 1 else called("reshape", texts[0], literal((-1, *rest)))
    return called("take", given, index, axis=0)


def sliced(node: Node, texts: list[str]) -> str:
    begins, sizes = _constant(node, 1), _constant(node, 2)
    parts = [
        _range(int(b) or None, None if s < 0 else int(b + s))
        for b, s in zip(begins, sizes, strict=True)
    ]
    return _indexed(texts[0], _without_full(parts))


def _range(first: Any, end: Any, step: Any = None) -> str:
    parts = ["" if x is None else str(x) for x in (first, end)]
    return ":".join(parts) + ("" if step in (None, 1) else f":{step}")


def _without_full(parts: list[str]) -> list[str]:
    while len(parts) > 1 and parts[-1] == ":":
        parts = parts[:-1]
    return parts


def _indexed(text: str, parts: list[str]) -> str:
    return f"{primary(text)}[{', '.join(parts)}]"


def strided_slice(node: Node, texts: list[str]) -> str:
    masks = {m: node.attrs[f"{m}_mask"] for m in ("begin", "end", "ellipsis", "new_axis")}
    masks["shrink"] = node.attrs["shrink_axis_mask"]
    ends = [_places(node, i, texts[i]) for i in (1, 2, 3)]
    parts = []
    for i, (begin, end, step) in enumerate(zip(*ends, strict=True)):
        has = {mask: bool(bits >> i & 1) for mask, bits in masks.items()}
        if has["ellipsis"]:
            parts.append("...")
        elif has["new_axis"]:
            parts.append("None")
        elif has["shrink"]:
            parts.append(begin)
        else:
            first = None if has["begin"] or begin == "0" else begin
            parts.append(_range(first, None if has["end"] else end, None if step == "1" else step))
    return _indexed(texts[0], parts if "..." in parts else _without_full(parts))


def _places(node: Node, index: int, text: str) -> list[str]:
    """The texts of a vector's elements: of begins, ends or steps."""
    value = node.inputs[index]
    if value.constant is not None:
        return [str(int(x)) for x in value.constant]
    if value.node.kind == SIZES and text.startswith("("):
        return [ast.unparse(each) for each in ast.parse(text, mode="eval").body.elts]  # type: ignore[attr-defined]
    raise UnknownOperationError("the bounds of a slice are computed")


def where(node: Node, texts: list[str]) -> str:
    condition, given = node.inputs[0], node.inputs[1]
    text = texts[0]
    if node.kind == "Select" and condition.rank == 1 and given.rank and given.rank > 1:
        text = called("reshape", text, literal((-1, *[1] * (given.rank - 1))))
    return called("where", text, *texts[1:])


def pool(name: str) -> Rule:
    def rule(node: Node, texts: list[str]) -> str:
        last = node.attrs.get("data_format", "NHWC")[-1] == "C"
        # Keras infers a wrong shape for a number.
        size, strides = (_spatial(node.attrs[key], last) for key in ("ksize", "strides"))
        if node.attrs["padding"] == "EXPLICIT":
            raise UnknownOperationError("explicit padding")
        return called(
            name,
            texts[0],
            literal(size),
            strides=None if strides == size else strides,
            padding=None if node.attrs["padding"] == "VALID" else "same",
            data_format=None if last else "channels_first",
        )

    return rule


def _spatial(sizes: Any, channels_last: bool) -> tuple[int, ...]:
    """The numbers of the spatial dimensions, of an attribute that has one of each dimension."""
    return tuple(sizes[1:-1] if channels_last else sizes[2:])


def convolution(name: str) -> Rule:
    def rule(node: Node, texts: list[str]) -> str:
        last = node.attrs.get("data_format", "NHWC")[-1] == "C"
        given, padding = texts[0], node.attrs["padding"].lower()
        if padding == "explicit":
            ends = node.attrs["explicit_paddings"]
            given = called("pad", given, literal(tuple(zip(ends[::2], ends[1::2], strict=True))))
            padding = "valid"
        strides, rates = (_spatial(node.attrs[key], last) for key in ("strides", "dilations"))
        return called(
            name,
            given,
            texts[1],
            strides=strides if set(strides) - {1} else None,
            padding=padding,
            data_format=None if last else "channels_first",
            dilation_rate=rates if set(rates) - {1} else None,
        )

    return rule


def batch_norm(node: Node, texts: list[str]) -> str:
    """Of a fused operation in inference, which normalizes by the given mean and variance."""
    if node.attrs.get("is_training", True):
        raise UnknownOperationError("it normalizes by the batch, outside of a layer")
    x, scale, offset, mean, variance = texts
    axis = -1 if node.attrs.get("data_format", "NHWC")[-1] == "C" else 1
    options = {"offset": offset, "scale": scale, "epsilon": literal(node.attrs["epsilon"])}
    return called(
        "batch_normalization",
        *[x, mean, variance, f"axis={axis}"],
        *[f"{k}={v}" for k, v in options.items()],
    )


def band_part(node: Node, texts: list[str]) -> str:
    lower, upper = int(_constant(node, 1)), int(_constant(node, 2))
    if (lower < 0) == (upper < 0):
        raise UnknownOperationError("a band with two bounds")
    return (
        called("tril", texts[0], k=upper or None)
        if lower < 0
        else called("triu", texts[0], k=-lower or None)
    )


def pad(node: Node, texts: list[str]) -> str:
    widths = tuple(tuple(int(x) for x in row) for row in _constant(node, 1))
    if node.kind == "MirrorPad":
        return called("pad", texts[0], literal(widths), mode=node.attrs["mode"].lower())
    value = texts[2] if node.kind == "PadV2" and texts[2] not in ("0.0", "0") else None
    given = [] if value is None else [f"constant_values={value}"]
    return called("pad", texts[0], literal(widths), *given)


def running(name: str) -> Rule:
    """A cumulative sum or product."""

    def rule(node: Node, texts: list[str]) -> str:
        axis = _axis(node, 1)
        turned = bool(node.attrs["reverse"])
        given = called("flip", texts[0], axis=axis) if turned else texts[0]
        made = called(name, given, axis=axis)
        if node.attrs["exclusive"]:
            operator = "-" if name == "cumsum" else "/"
            made = infix(made, operator, given)
        return called("flip", made, axis=axis) if turned else made

    return rule


def random(name: str) -> Rule:
    def rule(node: Node, texts: list[str]) -> str:
        dtype = node.outputs[0].dtype
        given = [] if dtype == "float32" else [f'dtype="{dtype}"']
        shape = argument(node.inputs[0], texts[0])
        return f"keras.random.{name}({', '.join([shape, *given, f'seed={SEED}'])})"

    return rule


def arg_best(name: str) -> Rule:
    return lambda node, texts: called(name, texts[0], axis=_axis(node, 1))


def keras_function(node: Node, texts: list[str]) -> str:
    """A call that the recognition of layers found."""
    return called(node.attrs["function"], *texts, **node.attrs["options"])


def attribute_function(name: str, **attributes: str) -> Rule:
    """A function with an operation's attributes as options."""

    def rule(node: Node, texts: list[str]) -> str:
        return called(name, *texts, **{k: node.attrs[v] for k, v in attributes.items()})

    return rule


def cross_entropy(name: str) -> Rule:
    """The loss of a cross entropy, which is its first output; the other is a gradient."""
    return lambda node, texts: called(name, texts[1], texts[0], from_logits=True)


def written(node: Node, texts: list[str]) -> str:
    """Python text that a step before has made."""
    text: str = node.attrs["text"]
    return text.format(*(primary(each) for each in texts))
