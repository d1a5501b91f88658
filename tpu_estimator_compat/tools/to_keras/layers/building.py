"""Calls of Keras, made of what a pattern found, where the shapes allow them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.graph import Node, Value, Weight
from tpu_estimator_compat.tools.to_keras.layers.matching import NODES, Found, Made
from tpu_estimator_compat.tools.to_keras.reading import computed
from tpu_estimator_compat.tools.to_keras.simplify import elements_of

Variables = Mapping[str, Weight]
Shape = tuple[Any, ...]


class UnfitError(Exception):
    """What a pattern found is not what Keras computes."""


def need(*conditions: Any) -> None:
    """Raises UnfitError unless all conditions hold."""
    if not all(conditions):
        raise UnfitError


@dataclasses.dataclass
class Call:
    """A call of a layer, or of a function of `keras.ops`.

    Attributes:
      after: makes what the call stands for of the layer's node, which has no outputs yet.
    """

    name: str
    inputs: list[Value]
    args: list[Any] = dataclasses.field(default_factory=list)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    bound: dict[str, Made] = dataclasses.field(default_factory=dict)
    call: dict[str, Any] = dataclasses.field(default_factory=dict)
    after: Callable[[Node], Value] | None = None


Builder = Callable[[Found, Variables], Call | Value]
"""Makes the call of what a pattern found, or raises UnfitError."""


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
    return next(node for node in found[NODES] if node.kind.startswith(kinds))


# functions


def function(name: str, **options: Any) -> Builder:
    return lambda found, _: Call(name, [found["x"]], options=options)


def leaky_relu(found: Found, _: Variables) -> Call:
    need(0 < found["slope"] < 1)
    options = different(negative_slope=(found["slope"], 0.2))
    return Call("ops.leaky_relu", [found["x"]], options=options)


def normalize(found: Found, _: Variables) -> Call:
    axes = _axes(found)
    need(len(axes) == 1, found["least"] > 0)
    options = {"axis": _short(axes[0], found["x"]), "epsilon": _decimal(math.sqrt(found["least"]))}
    return Call("ops.normalize", [found["x"]], options=options)


def of_selected(found: Found, _: Variables) -> Value:
    """The sum or mean of all that a mask selects, which needs no array of unknown length."""
    x, mask, node = found["x"], found["mask"], found[NODES][0]
    rest = sizes(found["selected"])[1:]
    need(mask.dtype == "bool", mask.rank, "float" in x.dtype, node.outputs[0].shape == ())
    need(len(sizes(x)) == mask.rank + len(rest), sizes(x)[mask.rank :] == rest, None not in rest)

    def reduced(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        for _ in rest:
            mask = tf.expand_dims(mask, -1)
        total = tf.reduce_sum(tf.where(mask, x, tf.constant(0, x.dtype)))
        if node.kind == "Sum":
            return total
        count = tf.reduce_sum(tf.cast(mask, x.dtype))
        return total / (count * math.prod(rest) if rest else count)

    return computed(reduced, x, mask, name=node.name)


def repeat(found: Found, _: Variables) -> Value:
    """Takes each element as often as it is repeated: under JAX, `ops.repeat` takes no list."""
    x, counts, made = found["x"], found["counts"], found[NODES][0].outputs[0]
    need(counts.node.kind == "BroadcastTo")
    axis, numbers = len(sizes(counts)) - 1, counts.node.inputs[0].constant
    need(numbers is not None, numbers.shape == sizes(x)[axis : axis + 1])
    need(sizes(made) == (*sizes(x)[:axis], numbers.sum(), *sizes(x)[axis + 1 :]))
    places = np.repeat(np.arange(len(numbers)), numbers)
    return computed(lambda x: tf.gather(x, places, axis=axis), x, name=made.node.name)


def softmax(found: Found, _: Variables) -> Call:
    axis, wanted = found["order"][-1], [*range(len(found["order"]))]
    wanted[axis], wanted[-1] = wanted[-1], axis
    need([*found["order"]] == wanted)
    name = "ops.softmax" if found[NODES][1].kind == "Softmax" else "ops.log_softmax"
    return Call(name, [found["x"]], options={"axis": axis})


def mean(found: Found, _: Variables) -> Call:
    measured = found["measured"] if "measured" in found else found["ones"]
    need(measured.shape == found["x"].shape, found[NODES][0].outputs[0].shape == ())
    return Call("ops.mean", [found["x"]])


def count_nonzero(found: Found, _: Variables) -> Value:
    """The number of weights that are not zero, as SUM_BY_NONZERO_WEIGHTS takes it."""
    w, made = found["w"], found[NODES][0].outputs[0]
    need(made.shape == (), made.node.inputs[0].shape == w.shape)
    attrs = {"text": f'ops.cast(ops.count_nonzero({{0}}), "{made.dtype}")'}
    return Node(g.EXPRESSION, made.node.name, [w], attrs).output((), made.dtype)


def binary_crossentropy(found: Found, _: Variables) -> Call:
    inputs = [found["z"], found["x"]]
    return Call("ops.binary_crossentropy", inputs, options={"from_logits": True})


def sparse_crossentropy(found: Found, _: Variables) -> Call:
    x, z = found["x"], found["z"]
    need(x.shape, z.shape == sizes(x)[:-1], found[NODES][0].outputs[0].rank == z.rank)
    return Call("ops.sparse_categorical_crossentropy", [z, x], options={"from_logits": True})


def _axes(found: Found) -> tuple[int, ...]:
    axes, rank = found["axes"], len(sizes(found["x"]))
    need(rank)
    return tuple(sorted(a % rank for a in (axes if isinstance(axes, tuple) else (axes,))))


def _short(axis: int, x: Value) -> int:
    return -1 if axis == len(sizes(x)) - 1 else axis


def _decimal(number: float) -> float:
    return float(f"{number:.6g}")


# dense layers and lookups


def dense(found: Found, _: Variables) -> Call:
    node, kernel = node_of(found, "MatMul", "BatchMatMul"), found["kernel"]
    if node.attrs.get("transpose_b") or node.attrs.get("adj_y"):
        kernel = kernel.transposed()
    if "shape" in found:
        _need_leading(found)
    return _dense(found["x"], kernel)


def matmul(found: Found, _: Variables) -> Call:
    """A product along the last axis, as tensordot makes it."""
    x, matrix = found["x"], found["matrix"]
    _need_leading(found)
    need(not node_of(found, "MatMul").attrs["transpose_b"], sizes(x)[-1] is not None)
    need(sizes(matrix)[:1] == sizes(x)[-1:])
    return Call("ops.matmul", [x, matrix])


def _dense(x: Value, kernel: Made | None) -> Call:
    need(kernel and len(kernel.shape) == 2, is_data(x))
    assert kernel is not None
    need(sizes(x)[-1] == kernel.shape[0])
    options = {"use_bias": False}
    return Call("layers.Dense", [x], [kernel.shape[1]], options, {"kernel": kernel})


def is_data(x: Value) -> bool:
    """Whether a layer may take a value: one of the program's inputs, and no row's number."""
    before = {node.kind for node in g.ordered([x.node])}
    return bool(x.shape) and not before.isdisjoint((g.INPUT, g.LABEL)) and _origin(x) != "OneHot"


def _origin(x: Value) -> str:
    while x.node.kind == "Reshape":
        x = x.node.inputs[0]
    return x.node.kind


def _need_leading(found: Found) -> None:
    """Needs a reshape that gives back all sizes of x but the last."""
    x, made = found["x"], found[NODES][0].outputs[0]
    need(x.shape, made.rank == x.rank, sizes(made) and sizes(made)[-1] is not None)
    pairs = list(zip(sizes(x)[:-1], sizes(made)[:-1], strict=True))
    unknown = [i for i, pair in enumerate(pairs) if None in pair]
    need(all(a == b for a, b in pairs if None not in (a, b)))
    if len(unknown) > 1:
        elements = elements_of(found["shape"]) or [None] * len(pairs)
        given = [elements[i].node for i in unknown if isinstance(elements[i], Value)]
        need([node.attrs.get("axis") for node in given] == unknown)
        need(all(node.inputs[0] is g.sized_like(x, node.attrs["axis"]) for node in given))


def einsum_dense(found: Found, _: Variables) -> Call:
    x, kernel, node = found["x"], found["kernel"], found[NODES][0]
    terms, _, made = node.attrs["equation"].replace(" ", "").partition("->")
    ours, weights = terms.split(",")[:: 1 if node.inputs[0] is x else -1]
    need("." not in terms, is_data(x), made, ours and made[:1] == ours[0] not in weights)
    need(all(len(set(each)) == len(each) for each in (ours, weights, made)))
    need({*ours} - {*made} == {*weights} - {*made})  # no axis of one is summed alone
    if made[:-1] == ours[:-1] and weights == ours[-1] + made[-1]:
        return _dense(x, kernel)
    known = dict(zip(weights, kernel.shape, strict=True))
    shape = tuple(known[c] if c in weights and c not in ours else None for c in made[1:])
    args = [f"{ours},{weights}->{made}"]
    options = {"output_shape": shape[0] if len(shape) == 1 else shape}
    return Call("layers.EinsumDense", [x], args, options, {"kernel": kernel})


def embedding(found: Found, _: Variables) -> Call:
    table, ids = found["embeddings"], found["ids"]
    need(len(table.shape) == 2, not found[NODES][0].attrs.get("batch_dims"), is_data(ids))
    return Call("layers.Embedding", [ids], list(table.shape), bound={"embeddings": table})


def dropout(found: Found, _: Variables) -> Call:
    x = found["x"]
    rate = found["rate"] if "rate" in found else 1 - found["keep"]
    scale = found["scale"] if "scale" in found else 1 / found["keep"]
    drawn = sizes(node_of(found, "RandomUniform", "StatelessRandomUniformV2").outputs[0])
    need(0 < rate < 1, abs(scale * (1 - rate) - 1) < 1e-5, x.shape, len(drawn) == x.rank)
    pairs = zip(drawn, sizes(x), strict=True)
    noise = tuple(1 if n == 1 and size != 1 else None for n, size in pairs)
    options = {"noise_shape": noise} if any(noise) else {}
    return Call("layers.Dropout", [x], [_decimal(rate)], options, call={"training": g.TRAINING})


# normalization


def _normalization(name: str, found: Found, shape: Shape, extra: Found | None = None) -> Call:
    """A normalization with weights of a shape, each of which broadcasts along its axes."""
    given = ("gamma", "beta", "moving_mean", "moving_variance")
    bound = {k: found[k] for k in given if isinstance(found.get(k), Made)}
    for made in bound.values():
        need(made.size == math.prod(n or 0 for n in shape), made.shape[-len(shape) :] == shape)
    options = (extra or {}) | different(
        epsilon=(found["epsilon"], 1e-3),
        center=("beta" in bound, True),
        scale=("gamma" in bound, True),
    )
    bound = {k: made.reshaped(*shape) for k, made in bound.items()}
    return Call(f"layers.{name}Normalization", [found["x"]], options=options, bound=bound)


def normalization(found: Found, variables: Variables) -> Call:
    x, rank, last = found["x"], len(sizes(found["x"])), sizes(found["x"])[-1:]
    need(is_data(x), rank > 1, ("moving_mean" in found) == ("moving_variance" in found))
    if "moving_mean" in found:
        moving = (found["moving_mean"], found["moving_variance"])
        need(not any(made.weight.trainable for made in moving))
        return _normalization("Batch", found, last)
    axes = _axes(found)
    need(found["variance"].rank == found["mean"].rank)
    if axes == tuple(range(rank - 1)):
        return _trained(found, variables, last)
    need(found["mean"].rank == rank)
    over = sizes(x)[rank - len(axes) :]
    weights = [found[k] for k in ("gamma", "beta") if k in found]
    if axes == tuple(range(rank - len(axes), rank)) and all(
        made.shape[-len(axes) :] == over for made in weights
    ):
        return _of_last(found, axes)
    groups = {tuple(range(1, rank)): 1, tuple(range(1, rank - 1)): -1}.get(axes)
    need(groups, rank > 2)
    return _normalization("Group", found, last, {"groups": groups})


def _trained(found: Found, variables: Variables, shape: Shape, extra: Found | None = None) -> Call:
    """A batch normalization in training, with the averages that stand beside its weights."""
    own = [found[k] for k in ("beta", "gamma") if isinstance(found.get(k), Made)]
    need(own)
    paths = {
        n: [*own[0].weight.name.split("/")[:-1], n] for n in ("moving_mean", "moving_variance")
    }
    weights = {n: variables.get("/".join(path)) for n, path in paths.items()}
    need(*weights.values())
    moving = {n: Made(weight, weight.shape) for n, weight in weights.items() if weight}
    call = _normalization("Batch", {**found, **moving}, shape, extra)
    call.call = {"training": g.TRAINING}
    return call


def _of_last(found: Found, axes: tuple[int, ...]) -> Call:
    x = found["x"]
    short = [_short(axis, x) for axis in axes]
    last = sizes(x)[-len(axes) :]
    need(None not in last)
    return _normalization("Layer", found, last, {} if short == [-1] else {"axis": short})


def group_normalization(found: Found, _: Variables) -> Call:
    """Of an input that was reshaped to have its groups as a dimension of their own."""
    parts, made = found["x"], found[NODES][0].outputs[0]
    need(parts.node.kind == "Reshape")
    x = parts.node.inputs[0]
    rank, shape = len(sizes(x)), sizes(parts)
    need(rank > 2, len(shape) == rank + 1, None not in (*sizes(x)[1:], *shape[1:]))
    need(_axes(found) == tuple(i for i in range(1, rank + 1) if i != rank - 1))
    need(sizes(x)[1:-1] == shape[1:-2], made.shape == x.shape, found["mean"].rank == rank + 1)
    call = _normalization("Group", found, shape[-2:], {"groups": shape[-2]})
    bound = {k: weight.reshaped(weight.size) for k, weight in call.bound.items()}
    return dataclasses.replace(call, inputs=[x], bound=bound)


def flat_normalization(found: Found, _: Variables) -> Call:
    """A layer normalization of Keras 2: its rows are the channels of one fused operation."""
    x, gamma, node = found["x"], found["gamma"], node_of(found, "FusedBatchNorm")
    elements = elements_of(found["sizes"]) or [0]
    need(node.attrs["is_training"], node.attrs["data_format"] == "NCHW", x.shape)
    need(elements[0] == 1, elements[-2:] == [gamma.size, 1])
    need(found[NODES][0].outputs[0].shape == x.shape)
    for value, number in ((node.inputs[1], 1), (node.inputs[2], 0)):
        filled = value.node.inputs[1] if value.node.kind == "Fill" else value
        need(filled.constant is not None and (filled.constant == number).all())
    axes = tuple(range(len(sizes(x)) - len(gamma.shape), len(sizes(x))))
    return _of_last({**found, "epsilon": _decimal(node.attrs["epsilon"])}, axes)


def fused_batch_normalization(found: Found, variables: Variables) -> Call:
    x, node = found["x"], found[NODES][0]
    weights: Found = {"x": x, "epsilon": _decimal(node.attrs["epsilon"])}
    for name, absent in (("gamma", 1), ("beta", 0)):
        if found[name].constant is None:
            weights[name] = Made.of(found[name])
            need(weights[name])
        else:
            need((found[name].constant == absent).all())
    axis = 1 if node.attrs["data_format"].startswith("NC") else -1
    extra = different(axis=(axis, -1))
    need(is_data(x))
    shape = (sizes(x)[axis],)
    if node.attrs["is_training"]:
        return _trained(weights, variables, shape, extra)
    weights["moving_mean"] = Made.of(found["averages"])
    weights["moving_variance"] = Made.of(found["variances"])
    need(weights["moving_mean"], weights["moving_variance"])
    return _normalization("Batch", weights, shape, extra)


def rms_normalization(found: Found, _: Variables) -> Call:
    x, scale = found["x"], found["scale"]
    need(is_data(x), _axes(found) == (len(sizes(x)) - 1,), scale.trailing == sizes(x)[-1:])
    options = different(epsilon=(found["epsilon"], 1e-6))
    bound = {"scale": scale.reshaped(scale.size)}
    return Call("layers.RMSNormalization", [x], options=options, bound=bound)
