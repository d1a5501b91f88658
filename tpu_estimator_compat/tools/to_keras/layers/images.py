"""Convolutions and pooling, as calls of Keras."""

from __future__ import annotations

import dataclasses
from typing import Any

from tpu_estimator_compat.tools.to_keras.graph import Node, Value
from tpu_estimator_compat.tools.to_keras.layers.building import (
    Call,
    Variables,
    different,
    node_of,
    only,
    sizes,
)
from tpu_estimator_compat.tools.to_keras.layers.matching import NODES, Found
from tpu_estimator_compat.tools.to_keras.layers.weights import Made

_PADDINGS = {"SAME": "same", "VALID": "valid", "EXPLICIT": "valid"}


@dataclasses.dataclass
class _Window:
    """How an operation moves over the spatial dimensions of its input."""

    x: Value
    node: Node
    axes: list[int]
    """Of the spatial dimensions in the operation's input."""
    channels_first: bool

    @classmethod
    def of(cls, found: Found, node: Node) -> _Window | None:
        """The window over x, which may have got an axis to be an image; None where it is none."""
        x, first = found["x"], node.attrs["data_format"].startswith("NC")
        rank = len(node.attrs["strides"])
        axes = list(range(2, rank) if first else range(1, rank - 1))
        inserted = found.get("axis")
        squeezed = found[NODES][0] if found[NODES][0].kind == "Squeeze" else None
        if (inserted is None) != (squeezed is None) or not x.shape:
            return None
        if squeezed:
            axis = found["axis"] % rank
            if [a % rank for a in squeezed.attrs["squeeze_dims"]] != [axis] or axis not in axes:
                return None
            axes.remove(axis)
        if x.rank != len(axes) + 2 or sizes(x)[1 if first else -1] is None:
            return None
        return cls(x, node, axes, first)

    def sizes(self, attribute: str) -> tuple[int, ...]:
        values = self.node.attrs.get(attribute) or [1] * len(self.node.attrs["strides"])
        return tuple(values[axis] for axis in self.axes)

    def kernel(self, kernel: Made) -> Made | None:
        """The kernel without the dimension of an inserted axis."""
        offset = 2 if self.channels_first else 1
        kept = [kernel.shape[axis - offset] for axis in self.axes]
        made = kernel.reshaped(*kept, *kernel.shape[-2:])
        return made if made.size == kernel.size else None

    @property
    def channels(self) -> int:
        channels: int = sizes(self.x)[1 if self.channels_first else -1]
        return channels

    def options(self) -> dict[str, Any]:
        first = "channels_first" if self.channels_first else None
        return different(
            strides=(only(self.sizes("strides")), 1),
            padding=(_PADDINGS[self.node.attrs["padding"]], "valid"),
            data_format=(first, None),
            dilation_rate=(only(self.sizes("dilations")), 1),
        )

    def pads(self) -> tuple[tuple[int, int], ...]:
        if self.node.attrs["padding"] != "EXPLICIT":
            return ()
        numbers = self.node.attrs["explicit_paddings"]
        return tuple((numbers[2 * axis], numbers[2 * axis + 1]) for axis in self.axes)


def convolution(found: Found, _: Variables) -> Call | None:
    node = node_of(found, "Conv2D", "Conv3D", "DepthwiseConv2dNative")
    window = _Window.of(_inside(found), node)
    kernel = window.kernel(found["kernel"]) if window else None
    if not window or kernel is None or (("block" in found) != ("crops" in found)):
        return None
    options, pads, rank = window.options(), window.pads(), len(window.axes)
    size, given = kernel.shape[:-2], kernel.shape[-2]
    if "block" in found:
        dilated = _dilated(found, size)
        if dilated is None or options or window.channels_first:
            return None
        options, pads = dilated
    if node.kind == "DepthwiseConv2dNative":
        args, name = [only(size)], "DepthwiseConv"
        options |= different(depth_multiplier=(kernel.shape[-1], 1))
    else:
        args, name = [kernel.shape[-1], only(size)], "Conv"
        options |= different(groups=(window.channels // given, 1))
    options["use_bias"] = False
    name = f"layers.{name}{rank}D"
    return Call(name, [window.x], args, options, {"kernel": kernel}, pads=pads)


def _inside(found: Found) -> Found:
    """What was found, from the operation on that takes the image's batches apart."""
    skipped = found[NODES][0].kind == "BatchToSpaceND"
    return {**found, NODES: found[NODES][1:]} if skipped else found


def _dilated(
    found: Found, size: tuple[int, ...]
) -> tuple[dict[str, Any], tuple[tuple[int, int], ...]] | None:
    """Options and paddings of a convolution that goes over every n-th element."""
    block, pads = found["block"], []
    if len(block) != len(size):
        return None
    for (before, after), (first, last) in zip(found["pads"], found["crops"], strict=True):
        if first:
            return None
        pads.append((before, after - last))
    totals = [(k - 1) * n for k, n in zip(size, block, strict=True)]
    options = {"dilation_rate": only(block)}
    if pads == [(total // 2, total - total // 2) for total in totals]:
        return {"padding": "same", **options}, ()
    return options, tuple(pads) if any(map(any, pads)) else ()


def separable(found: Found, _: Variables) -> Call | None:
    node, point = node_of(found, "DepthwiseConv2dNative"), node_of(found, "Conv2D")
    window, second = _Window.of(found, node), found["point"]
    depthwise = window.kernel(found["depth"]) if window else None
    scopes = {made.weight.name.rpartition("/")[0] for made in (found["depth"], second)}
    if not window or depthwise is None or len(scopes) > 1 or window.pads():
        return None
    if set(second.shape[:-2]) != {1} or set(point.attrs["strides"]) != {1}:
        return None
    if point.attrs["padding"] == "EXPLICIT":
        return None
    if second.shape[-2] != window.channels * depthwise.shape[-1]:
        return None
    rank = len(window.axes)
    bound = {
        "depthwise_kernel": depthwise,
        "pointwise_kernel": second.reshaped(*[1] * rank, *second.shape[-2:]),
    }
    options = window.options() | different(depth_multiplier=(depthwise.shape[-1], 1))
    if "bias" in found:
        bound["bias"] = found["bias"]
    else:
        options["use_bias"] = False
    args = [second.shape[-1], only(depthwise.shape[:-2])]
    return Call(f"layers.SeparableConv{rank}D", [window.x], args, options, bound)


def transposed(found: Found, _: Variables) -> Call | None:
    node, kernel = found[NODES][0], found["kernel"]
    window, made = _Window.of(found, node), node.outputs[0].shape
    if not window or not made or set(window.sizes("dilations")) != {1} or window.pads():
        return None
    size, strides = kernel.shape[:-2], window.sizes("strides")
    for axis, k, stride in zip(window.axes, size, strides, strict=True):
        given = sizes(window.x)[axis]
        more = max(k - stride, 0) if node.attrs["padding"] == "VALID" else 0
        if given is None or made[axis] != given * stride + more:
            return None
    args = [kernel.shape[-2], only(size)]
    options = {**window.options(), "use_bias": False}
    name = f"layers.Conv{len(size)}DTranspose"
    return Call(name, [window.x], args, options, {"kernel": kernel})


def pooling(found: Found, _: Variables) -> Call | None:
    node = node_of(found, "MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D")
    window = _Window.of(found, node)
    if not window or node.attrs["padding"] == "EXPLICIT":
        return None
    size, strides = window.sizes("ksize"), window.sizes("strides")
    for attribute in ("ksize", "strides"):
        if any(node.attrs[attribute][i] != 1 for i in (0, 1 if window.channels_first else -1)):
            return None
    options = window.options()
    options.pop("strides", None)
    options = different(strides=(only(strides), only(size))) | options
    name = "Max" if node.kind.startswith("Max") else "Average"
    return Call(f"layers.{name}Pooling{len(size)}D", [window.x], [only(size)], options)


def global_pooling(found: Found, _: Variables) -> Call | None:
    x, node, axes = found["x"], found[NODES][0], found["axes"]
    rank = x.rank or 0
    if rank not in (4, 5) or sorted(axes if isinstance(axes, tuple) else ()) != [
        *range(1, rank - 1)
    ]:
        return None
    name = "Max" if node.kind == "Max" else "Average"
    options = different(keepdims=(bool(node.attrs.get("keep_dims")), False))
    return Call(f"layers.Global{name}Pooling{rank - 2}D", [x], options=options)
