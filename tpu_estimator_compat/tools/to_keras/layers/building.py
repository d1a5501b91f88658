"""Calls of Keras, made of what a pattern found, where the shapes allow them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from tpu_estimator_compat.tools.to_keras.graph import (
    TRAINING,
    Node,
    Value,
    Weight,
)
from tpu_estimator_compat.tools.to_keras.layers.matching import NODES, Found
from tpu_estimator_compat.tools.to_keras.layers.weights import Made
from tpu_estimator_compat.tools.to_keras.simplify import elements_of

Variables = Mapping[str, Weight]


@dataclasses.dataclass
class Call:
    """A call of a layer, or of a function where `name` has a small last part, such as "ops.gelu".

    Attributes:
      pads: zeros that the input needs before and after, by spatial dimension.
      after: makes what the call stands for of the layer's value.
    """

    name: str
    inputs: list[Value]
    args: list[Any] = dataclasses.field(default_factory=list)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    bound: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    call: dict[str, Any] = dataclasses.field(default_factory=dict)
    pads: tuple[tuple[int, int], ...] = ()
    after: Callable[[Value], Value] | None = None


Builder = Callable[[Found, Variables], Call | Value | None]


def different(**options: tuple[Any, Any]) -> dict[str, Any]:
    """The options that differ from their defaults, given as (value, default)."""
    return {k: value for k, (value, default) in options.items() if value != default}


def only(values: tuple[int, ...]) -> Any:
    """One number for several equal ones."""
    return values[0] if len(set(values)) == 1 else values


def sizes(x: Value) -> tuple[Any, ...]:
    """The shape of a value, empty where its rank is unknown."""
    return x.shape or ()


def node_of(found: Found, *kinds: str) -> Node:
    """The operation of a kind that a pattern found."""
    return next(node for node in found[NODES] if node.kind in kinds)


# functions


def function(name: str, **options: Any) -> Builder:
    return lambda found, _: Call(name, [found["x"]], options=options)


def leaky_relu(found: Found, _: Variables) -> Call | None:
    slope = found["slope"]
    if not 0 < slope < 1:
        return None
    return Call("ops.leaky_relu", [found["x"]], options=different(negative_slope=(slope, 0.2)))


def normalize(found: Found, _: Variables) -> Call | None:
    axis = _axis(found["axes"], found["x"])
    if not isinstance(axis, int) or found["least"] <= 0:
        return None
    epsilon = float(f"{math.sqrt(found['least']):.6g}")
    return Call("ops.normalize", [found["x"]], options={"axis": axis, "epsilon": epsilon})


def softmax(name: str) -> Builder:
    def build(found: Found, _: Variables) -> Call | None:
        order = list(found["order"])
        axis, last = order[-1], len(order) - 1
        wanted = list(range(last + 1))
        wanted[axis], wanted[last] = last, axis
        return Call(name, [found["x"]], options={"axis": axis}) if order == wanted else None

    return build


def _axis(axes: Any, x: Value) -> Any:
    """Axes as Keras takes them: a number or a list, the last one as -1."""
    numbers = _numbers(axes, x)
    if numbers is None:
        return None
    named = [-1 if i == (x.rank or 0) - 1 else i for i in numbers]
    return named[0] if len(named) == 1 else named


def _numbers(axes: Any, x: Value) -> tuple[int, ...] | None:
    if x.rank is None:
        return None
    return tuple(sorted(a % x.rank for a in (axes if isinstance(axes, tuple) else (axes,))))


# dense layers and lookups


def dense(found: Found, _: Variables) -> Call | None:
    x, kernel, outer = found["x"], found["kernel"], found[NODES][0]
    node = node_of(found, "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
    if node.attrs.get("transpose_b") or node.attrs.get("adj_y"):
        kernel = kernel.transposed() if len(kernel.shape) == 2 else None
    if kernel is None:
        return None
    if "shape" in found and not _keeps_leading(x, outer.outputs[0], found["shape"]):
        return None
    return _dense(x, kernel)


def matmul(found: Found, _: Variables) -> Call | None:
    """A product along the last axis, as tensordot makes it."""
    x, outer, node = found["x"], found[NODES][0], found[NODES][1]
    if node.attrs["transpose_b"] or not _keeps_leading(x, outer.outputs[0], found["shape"]):
        return None
    fits = sizes(found["matrix"])[:1] == sizes(x)[-1:] != (None,)
    return Call("ops.matmul", [x, found["matrix"]]) if fits else None


def _dense(x: Value, kernel: Made) -> Call | None:
    if len(kernel.shape) != 2 or not _is_data(x) or sizes(x)[-1] != kernel.shape[0]:
        return None
    options = {"use_bias": False}
    return Call("layers.Dense", [x], [kernel.shape[1]], options, {"kernel": kernel})


def _is_data(x: Value) -> bool:
    """Whether a layer may take a value: not one that variables make, nor a row's number."""
    node = x.node
    while node.kind == "Reshape":
        node = node.inputs[0].node
    made = x.constant is not None or Made.of(x) is not None
    return bool(x.shape) and not made and node.kind != "OneHot"


def _keeps_leading(x: Value, made: Value, shape: Value) -> bool:
    """Whether a reshape gives back all sizes of x but the last."""
    if not x.shape or made.rank != x.rank or made.shape is None or made.shape[-1] is None:
        return False
    pairs = list(zip(sizes(x)[:-1], made.shape[:-1], strict=True))
    unknown = [i for i, pair in enumerate(pairs) if None in pair]
    if any(a != b for i, (a, b) in enumerate(pairs) if i not in unknown):
        return False
    if len(unknown) <= 1:
        return True
    elements = elements_of(shape)
    return elements is not None and all(
        isinstance(elements[i], Value)
        and elements[i].node.attrs.get("axis") == i
        and elements[i].node.inputs[0] is x
        for i in unknown
    )


def einsum_dense(found: Found, _: Variables) -> Call | None:
    x, kernel, node = found["x"], found["kernel"], found[NODES][0]
    terms, _, made = node.attrs["equation"].replace(" ", "").partition("->")
    given = terms.split(",")
    ours, weights = given if node.inputs[0] is x else given[::-1]
    if "." in terms or not _is_data(x) or not made or made[0] != ours[0] or made[0] in weights:
        return None
    if any(len(set(each)) != len(each) for each in (ours, weights, made)):
        return None
    if {*ours} - {*made} != {*weights} - {*made}:  # an axis of one that is summed alone
        return None
    if made[:-1] == ours[:-1] and weights == ours[-1] + made[-1]:
        return _dense(x, kernel)
    given_sizes = dict(zip(weights, kernel.shape, strict=True))
    shape = tuple(given_sizes[c] if c in weights and c not in ours else None for c in made[1:])
    args = [f"{ours},{weights}->{made}"]
    options = {"output_shape": shape[0] if len(shape) == 1 else shape}
    return Call("layers.EinsumDense", [x], args, options, {"kernel": kernel})


def embedding(found: Found, _: Variables) -> Call | None:
    table, ids, node = found["embeddings"], found["ids"], found[NODES][0]
    if len(table.shape) != 2 or node.attrs.get("batch_dims") or not ids.rank or not _is_data(ids):
        return None
    return Call("layers.Embedding", [ids], list(table.shape), bound={"embeddings": table})


def dropout(found: Found, _: Variables) -> Call | None:
    x = found["x"]
    rate = found["rate"] if "rate" in found else 1 - found["keep"]
    scale = found["scale"] if "scale" in found else 1 / found["keep"]
    if not 0 < rate < 1 or abs(scale * (1 - rate) - 1) > 1e-5:
        return None
    drawn = node_of(found, "RandomUniform", "StatelessRandomUniformV2").outputs[0].shape
    if drawn is None or x.shape is None or len(drawn) != len(x.shape):
        return None
    noise = tuple(
        1 if n == 1 and size != 1 else None for n, size in zip(drawn, sizes(x), strict=True)
    )
    options = {"noise_shape": noise} if any(noise) else {}
    args = [float(f"{rate:.6g}")]
    return Call("layers.Dropout", [x], args, options, call={"training": TRAINING})


# normalization


def _vector(made: Made | None, size: int | None) -> Made | None:
    """A weight that broadcasts along the last axis, as an array of one axis."""
    return made.reshaped(size) if made and size and made.trailing == (size,) else None


def _affine(found: Found) -> dict[str, Any]:
    return different(
        epsilon=(found["epsilon"], 1e-3),
        center=("beta" in found, True),
        scale=("gamma" in found, True),
    )


def normalization(found: Found, variables: Variables) -> Call | None:
    x = found["x"]
    if not _is_data(x) or ("moving_mean" in found) != ("moving_variance" in found):
        return None
    if "moving_mean" in found:
        if found["moving_mean"].weight.trainable or found["moving_variance"].weight.trainable:
            return None
        return _batch_normalization(found, found, sizes(x)[-1], _affine(found))
    axes, rank = _numbers(found["axes"], x) or (), x.rank or 0
    kept = found["mean"].rank == rank
    if rank < 2 or found["variance"].rank != found["mean"].rank:
        return None
    if axes == tuple(range(rank - 1)):
        moving = _moving(found, variables)
        affine = _affine(found)
        return _batch_normalization(found, moving, sizes(x)[-1], affine, TRAINING)
    if not kept:
        return None
    weights: Found = {k: found[k] for k in ("gamma", "beta") if k in found}
    options = _affine(found)
    last = sizes(x)[rank - len(axes) :]
    if axes == tuple(range(rank - len(axes), rank)) and all(
        made.shape[-len(last) :] == last and made.size == math.prod(last)
        for made in weights.values()
    ):
        return _layer_normalization(x, axes, options, weights)
    groups = {tuple(range(1, rank)): 1, tuple(range(1, rank - 1)): -1}.get(axes)
    bound = {k: _vector(made, sizes(x)[-1]) for k, made in weights.items()}
    if groups is None or rank < 3 or None in bound.values():
        return None
    options = {"groups": groups, **options}
    return Call("layers.GroupNormalization", [x], options=options, bound=bound)


def _layer_normalization(
    x: Value, axes: tuple[int, ...], options: dict[str, Any], weights: dict[str, Made]
) -> Call | None:
    last = sizes(x)[-len(axes) :]
    if None in last:
        return None
    bound = {k: made.reshaped(*last) for k, made in weights.items()}
    options = different(axis=(_axis(axes, x), -1)) | options
    return Call("layers.LayerNormalization", [x], options=options, bound=bound)


def group_normalization(found: Found, _: Variables) -> Call | None:
    """Of an input that was reshaped to have its groups as a dimension of their own."""
    parts = found["x"]
    x = parts.node.inputs[0] if parts.node.kind == "Reshape" else parts
    rank, shape = x.rank or 0, sizes(parts)
    over = tuple(i for i in range(1, rank + 1) if i != rank - 1)
    if rank < 3 or len(shape) != rank + 1 or _numbers(found["axes"], parts) != over:
        return None
    if sizes(x)[1:-1] != shape[1:-2] or None in sizes(x)[1:] or None in shape[-2:]:
        return None
    if found[NODES][0].outputs[0].shape != x.shape or found["mean"].rank != rank + 1:
        return None
    weights = {k: found[k] for k in ("gamma", "beta")}
    if any(made.shape[-2:] != shape[-2:] or made.size != sizes(x)[-1] for made in weights.values()):
        return None
    bound = {k: made.reshaped(made.size) for k, made in weights.items()}
    options = {"groups": shape[-2], **_affine(found)}
    return Call("layers.GroupNormalization", [x], options=options, bound=bound)


def flat_normalization(found: Found, _: Variables) -> Call | None:
    """A layer normalization of Keras 2: its rows are the channels of one fused operation."""
    x, elements, gamma = found["x"], elements_of(found["sizes"]), found["gamma"]
    node = next(n for n in found[NODES] if n.kind.startswith("FusedBatchNorm"))
    axes = tuple(range((x.rank or 0) - len(gamma.shape), x.rank or 0))
    if not node.attrs["is_training"] or node.attrs["data_format"] != "NCHW" or not x.rank:
        return None
    if elements is None or elements[-2:] != [gamma.size, 1]:
        return None
    if sizes(x)[-len(axes) :] != gamma.shape or found["beta"].shape != gamma.shape:
        return None
    if elements[0] != 1 or found[NODES][0].outputs[0].shape != x.shape:
        return None
    for value, number in ((node.inputs[1], 1), (node.inputs[2], 0)):
        filled = value.node.inputs[1] if value.node.kind == "Fill" else value
        if filled.constant is None or not (filled.constant == number).all():
            return None
    weights = {"gamma": gamma, "beta": found["beta"]}
    options = _affine({**weights, "epsilon": float(f"{node.attrs['epsilon']:.7g}")})
    return _layer_normalization(x, axes, options, weights)


def _moving(found: Found, variables: Variables) -> dict[str, Made] | None:
    """The averages that a batch normalization in training updates, by their names' scope."""
    for made in (found.get("beta"), found.get("gamma")):
        if isinstance(made, Made):
            scope = made.weight.name.rpartition("/")[0]
            names = {n: f"{scope}/{n}".lstrip("/") for n in ("moving_mean", "moving_variance")}
            if all(name in variables for name in names.values()):
                weights = {n: variables[name] for n, name in names.items()}
                return {n: Made(weight, weight.shape) for n, weight in weights.items()}
    return None


def _batch_normalization(
    found: Found,
    moving: Mapping[str, Any] | None,
    size: int | None,
    options: dict[str, Any],
    training: Any = None,
) -> Call | None:
    if moving is None:
        return None
    given = {k: found[k] for k in ("gamma", "beta") if isinstance(found.get(k), Made)}
    given |= {k: moving[k] for k in ("moving_mean", "moving_variance")}
    bound = {k: _vector(made, size) for k, made in given.items()}
    if None in bound.values():
        return None
    call = {} if training is None else {"training": training}
    return Call(
        "layers.BatchNormalization",
        [found["x"]],
        options=options,
        bound=bound,
        call=call,
    )


def fused_batch_normalization(found: Found, variables: Variables) -> Call | None:
    x, node = found["x"], found[NODES][0]
    weights: Found = {"x": x}
    for name, value, absent in (("gamma", found["gamma"], 1), ("beta", found["beta"], 0)):
        if value.constant is None:
            weights[name] = Made.of(value)
            if weights[name] is None:
                return None
        elif not (value.constant == absent).all():
            return None
    axis = 1 if node.attrs["data_format"].startswith("NC") else -1
    epsilon = float(f"{node.attrs['epsilon']:.7g}")
    options = different(axis=(axis, -1)) | _affine({**weights, "epsilon": epsilon})
    if not _is_data(x):
        return None
    size = sizes(x)[axis]
    if node.attrs["is_training"]:
        moving = _moving(weights, variables)
        return _batch_normalization(weights, moving, size, options, TRAINING)
    averages: Found = {
        "moving_mean": Made.of(found["averages"]),
        "moving_variance": Made.of(found["variances"]),
    }
    return (
        None
        if None in averages.values()
        else _batch_normalization(weights, averages, size, options)
    )


def rms_normalization(found: Found, _: Variables) -> Call | None:
    x, scale = found["x"], found["scale"]
    if not _is_data(x) or _axis(found["axes"], x) != -1:
        return None
    vector = _vector(scale, sizes(x)[-1])
    options = different(epsilon=(found["epsilon"], 1e-6))
    bound = {"scale": vector}
    return Call("layers.RMSNormalization", [x], options=options, bound=bound) if vector else None
