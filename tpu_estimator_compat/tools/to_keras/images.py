"""What operations on images are in Keras: windows that move over them, and other sizes."""

from __future__ import annotations

from typing import Any

from tpu_estimator_compat.tools.to_keras.expressions import (
    Rule,
    UnknownOperationError,
    called,
    python,
)
from tpu_estimator_compat.tools.to_keras.graph import Node
from tpu_estimator_compat.tools.to_keras.literals import literal


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


def resize(kind: str) -> Rule:
    def rule(node: Node, texts: list[str]) -> str:
        size, (_, *old, _) = tuple(python(node, 1).tolist()), node.inputs[0].shape or (None,) * 4
        corners, centers = (node.attrs[k] for k in ("align_corners", "half_pixel_centers"))
        if "float" not in node.inputs[0].dtype:
            raise UnknownOperationError("an image of integers")
        if (
            kind == "nearest"
            and not corners
            and not any(n is None or m % n for m, n in zip(size, old, strict=True))
        ):
            for axis, (new, before) in enumerate(zip(size, old, strict=True), 1):
                texts[0] = called("repeat", texts[0], str(new // before), axis=axis)
            return texts[0]
        if centers:
            return called("ops.image.resize", texts[0], literal(size), interpolation=kind)
        if kind != "bilinear" or None in old:
            raise UnknownOperationError("it takes no centers of pixels")
        return f"resize_bilinear({texts[0]}, {literal(size)}, align_corners={corners})"

    return rule


def patches(node: Node, texts: list[str]) -> str:
    size, strides, rates = (tuple(node.attrs[k][1:3]) for k in ("ksizes", "strides", "rates"))
    if max(strides) > 1 and max(rates) > 1:
        raise UnknownOperationError("strides and rates at once")
    return called(
        "ops.image.extract_patches",
        texts[0],
        literal(size),
        strides=strides,
        dilation_rate=None if rates == (1, 1) else rates,
        padding=node.attrs["padding"].lower(),
    )
