"""Convolutions and pooling, as calls of Keras."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tools.to_keras.graph import Node, Value
from tpu_estimator_compat.tools.to_keras.layers import building as b
from tpu_estimator_compat.tools.to_keras.layers.building import Call, Variables, need, only
from tpu_estimator_compat.tools.to_keras.layers.matching import NODES, Found, Made
from tpu_estimator_compat.tools.to_keras.reading import computed

_PADDINGS = {"SAME": "same", "VALID": "valid", "EXPLICIT": "valid"}
Pads = tuple[tuple[int, int], ...]


@dataclasses.dataclass
class _Window:
    """How an operation moves over the spatial dimensions of x, `axes` in the operation's input."""

    x: Value
    node: Node
    axes: list[int]
    channels_first: bool

    @classmethod
    def of(cls, found: Found, node: Node) -> _Window:
        """The window over x, which may have got an axis to be an image."""
        x, first = found["x"], node.attrs["data_format"].startswith("NC")
        rank = len(node.attrs["strides"])
        axes = list(range(2, rank) if first else range(1, rank - 1))
        squeezes = [n for n in found[NODES][:2] if n.kind == "Squeeze"]
        need(("axis" in found) == bool(squeezes), x.shape)
        for squeeze in squeezes:
            axis = found["axis"] % rank
            need([a % rank for a in squeeze.attrs["squeeze_dims"]] == [axis], axis in axes)
            axes.remove(axis)
        need(x.rank == len(axes) + 2, b.sizes(x)[1 if first else -1])
        return cls(x, node, axes, first)

    def sizes(self, attribute: str) -> tuple[int, ...]:
        values = self.node.attrs.get(attribute) or [1] * len(self.node.attrs["strides"])
        return tuple(values[axis] for axis in self.axes)

    def kernel(self, kernel: Made) -> Made:
        """The kernel without the dimension of an inserted axis."""
        offset = 2 if self.channels_first else 1
        kept = [kernel.shape[axis - offset] for axis in self.axes]
        made = kernel.reshaped(*kept, *kernel.shape[-2:])
        need(made.size == kernel.size)
        return made

    @property
    def channels(self) -> Any:
        return b.sizes(self.x)[1 if self.channels_first else -1]

    def options(self) -> dict[str, Any]:
        return b.different(
            strides=(only(self.sizes("strides")), 1),
            padding=(_PADDINGS[self.node.attrs["padding"]], "valid"),
            data_format=("channels_first" if self.channels_first else None, None),
            dilation_rate=(only(self.sizes("dilations")), 1),
        )

    def pads(self) -> Pads:
        if self.node.attrs["padding"] != "EXPLICIT":
            return ()
        numbers = self.node.attrs["explicit_paddings"]
        return tuple((numbers[2 * axis], numbers[2 * axis + 1]) for axis in self.axes)


def of_computed_kernel(found: Found, _: Variables) -> Call:
    node = found[NODES][0]
    window = _Window.of(found, node)
    need(node.attrs["padding"] != "EXPLICIT")
    name = "ops.depthwise_conv" if node.kind.startswith("Depthwise") else "ops.conv"
    return Call(name, [window.x, found["kernel"]], options=window.options())


def convolution(found: Found, _: Variables) -> Call:
    node = b.node_of(found, "Conv2D", "Conv3D", "DepthwiseConv2dNative")
    window = _Window.of(found, node)
    kernel = window.kernel(found["kernel"])
    need(("pads" in found) == ("crops" in found))
    options, pads = window.options(), window.pads()
    size, (given, made) = kernel.shape[:-2], kernel.shape[-2:]
    if "block" in found:
        need(not options)
        options, pads = _dilated(found, size)
    args = [only(size)]
    if node.kind == "DepthwiseConv2dNative":
        name = "DepthwiseConv"
        options |= b.different(depth_multiplier=(made, 1))
    else:
        args, name = [made, *args], "Conv"
        options |= b.different(groups=(window.channels // given, 1))
    options["use_bias"] = False
    name = f"layers.{name}{len(size)}D"
    x, around = window.x, ((0, 0),)
    if pads:
        full = (*around * 2, *pads) if window.channels_first else (*around, *pads, *around)
        x = computed(lambda x: tf.pad(x, full), x, name=node.name)
    return Call(name, [x], args, options, {"kernel": kernel})


def _dilated(found: Found, size: tuple[int, ...]) -> tuple[dict[str, Any], Pads]:
    """Options and paddings of a convolution that goes over every n-th element."""
    block, crops = found["block"], found["crops"]
    need(len(block) == len(size), all(first == 0 for first, _ in crops))
    pads = tuple(
        (before, after - last)
        for (before, after), (_, last) in zip(found["pads"], crops, strict=True)
    )
    totals = [(k - 1) * n for k, n in zip(size, block, strict=True)]
    options = {"dilation_rate": only(block)}
    if pads == tuple((total // 2, total - total // 2) for total in totals):
        return {"padding": "same", **options}, ()
    return options, pads if any(map(any, pads)) else ()


def separable(found: Found, _: Variables) -> Call:
    node, point = b.node_of(found, "DepthwiseConv2dNative"), b.node_of(found, "Conv2D")
    window, second = _Window.of(found, node), found["point"]
    first = window.kernel(found["depth"])
    scopes = {made.weight.name.rpartition("/")[0] for made in (first, second)}
    need(len(scopes) == 1, not window.pads(), point.attrs["padding"] != "EXPLICIT")
    need({*second.shape[:-2]} == {1} == {*point.attrs["strides"]})
    need(second.shape[-2] == window.channels * first.shape[-1])
    rank = len(window.axes)
    bound = {
        "depthwise_kernel": first,
        "pointwise_kernel": second.reshaped(*[1] * rank, *second.shape[-2:]),
    }
    options = window.options() | b.different(depth_multiplier=(first.shape[-1], 1))
    if "bias" in found:
        bound["bias"] = found["bias"]
    else:
        options["use_bias"] = False
    args = [second.shape[-1], only(first.shape[:-2])]
    return Call(f"layers.SeparableConv{rank}D", [window.x], args, options, bound)


def transposed(found: Found, _: Variables) -> Call:
    node, kernel = found[NODES][0], found["kernel"]
    window, output = _Window.of(found, node), b.sizes(node.outputs[0])
    need(output, {*window.sizes("dilations")} == {1}, not window.pads())
    size, strides = kernel.shape[:-2], window.sizes("strides")
    given, made = ([shape[axis] for axis in window.axes] for shape in (b.sizes(window.x), output))
    need(None not in (*given, *made))
    each = list(zip(given, made, size, strides, strict=True))
    options = {**window.options(), "use_bias": False}
    if node.attrs["padding"] == "VALID":
        need(all(o == n * s + max(k - s, 0) for n, o, k, s in each))
    elif not all(o == n * s for n, o, _, s in each):
        left = tuple(o - (n - 1) * s - k % 2 for n, o, k, s in each)
        need(all(0 <= n < stride for n, stride in zip(left, strides, strict=True)))
        options["output_padding"] = only(left)
    args = [kernel.shape[-2], only(size)]
    name = f"layers.Conv{len(size)}DTranspose"
    return Call(name, [window.x], args, options, {"kernel": kernel})


def pooling(found: Found, _: Variables) -> Call:
    node = b.node_of(found, "MaxPool", "AvgPool")
    window = _Window.of(found, node)
    need(node.attrs["padding"] != "EXPLICIT")
    for attribute in ("ksize", "strides"):
        sizes = node.attrs[attribute]
        need(sizes[0] == 1 == sizes[1 if window.channels_first else -1])
    size, strides = only(window.sizes("ksize")), only(window.sizes("strides"))
    options = {k: v for k, v in window.options().items() if k != "strides"}
    options = b.different(strides=(strides, size)) | options
    name = "Max" if node.kind.startswith("Max") else "Average"
    return Call(f"layers.{name}Pooling{len(window.axes)}D", [window.x], [size], options)


def global_pooling(found: Found, _: Variables) -> Call:
    x, node = found["x"], found[NODES][0]
    rank = len(b.sizes(x))
    need(rank in (4, 5), found["axes"] == tuple(range(1, rank - 1)))
    name = "Max" if node.kind == "Max" else "Average"
    options = b.different(keepdims=(bool(node.attrs.get("keep_dims")), False))
    return Call(f"layers.Global{name}Pooling{rank - 2}D", [x], options=options)
