"""Small TensorFlow graphs as programs, and the values of a program by Keras' layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.reading import read
from tpu_estimator_compat.tools.to_keras.saved_model import fill_tables
from tpu_estimator_compat.tools.to_keras.scans import find_scans
from tpu_estimator_compat.tools.to_keras.simplify import compute, simplify

Specs = Mapping[str, tuple[str, tuple[int | None, ...]]]


def draw(specs: Specs, seed: int = 3) -> dict[str, np.ndarray]:
    """Values for inputs: normal ones, numbers from 0 to 3, and words of one letter or none."""
    random = np.random.default_rng(seed)
    sizes = {k: (t, [5 if n is None else n for n in shape]) for k, (t, shape) in specs.items()}
    words = np.array([b"a", b"b", b"c", b""], object)
    return {
        k: random.choice(words, shape)
        if t == "string"
        else random.integers(0, 4, shape).astype(t)
        if "int" in t
        else random.normal(size=shape).astype(t)
        for k, (t, shape) in sizes.items()
    }


def program_of(
    build: Callable[..., Any], specs: Specs
) -> tuple[g.Program, dict[str, g.Weight], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The simplified program of `build`, its variables, and inputs with the session's outputs.

    Args:
      build: takes a placeholder for each input and returns a tensor, or a dict of them.
      specs: by name, dtype and shape of each placeholder.
    """
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        given = {k: tf.compat.v1.placeholder(t, s, name=k) for k, (t, s) in specs.items()}
        made = build(*given.values())
        outputs = made if isinstance(made, dict) else {"out": made}
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(tf.compat.v1.tables_initializer())
        random = np.random.default_rng(1)
        weights = {}
        trainable = tf.compat.v1.trainable_variables()
        for variable in tf.compat.v1.global_variables():
            shape = variable.shape.as_list()
            value = random.uniform(0.5, 1.5, shape).astype(variable.dtype.base_dtype.name)
            variable.load(value, session)
            name = variable.op.name
            is_trained = any(variable is each for each in trainable)
            weights[name] = g.Weight(name, value.shape, value.dtype.name, is_trained, value)
        feeds = draw(specs)
        results = session.run(outputs, {given[k]: v for k, v in feeds.items()})
        program = read(graph, given, outputs, weights)
        fill_tables(program, session)
    simplify(program)
    find_scans(program)
    return program, weights, feeds, results


def layers_of(program: g.Program) -> list[g.Layer]:
    return list(dict.fromkeys(node.layer for node in program.nodes() if node.kind == g.LAYER))


def run(program: g.Program, feeds: Mapping[str, Any], training: bool = False) -> dict[str, Any]:
    """The outputs of a program, its layers made by Keras with their weights."""
    values: dict[g.Value, Any] = {program.inputs[k]: v for k, v in feeds.items()}
    made: dict[g.Layer, Any] = {}
    for node in program.nodes():
        given = [values[value] for value in node.inputs]
        if node.kind == g.INPUT:
            continue
        if node.kind == g.WEIGHT:
            results = [_weight_of(node, made, program)]
        elif node.kind == g.CONSTANT:
            results = [node.attrs["value"]]
        elif node.kind == g.LAYER:
            results = _called(node, given, made, training)
        elif node.kind == g.FUNCTION:
            function = getattr(keras.ops, node.attrs["function"].removeprefix("ops."))
            results = [function(*given, **node.attrs["options"])]
        elif node.kind == g.SIZE:
            results = [np.int32(given[0].shape[node.attrs["axis"]])]
        elif node.kind == g.SIZES:
            left = iter(given)
            results = [np.array([next(left) if n is None else n for n in node.attrs["sizes"]])]
        else:
            results = compute(node, given)
        values.update(zip(node.outputs, results, strict=False))
    return {k: np.asarray(values[v]) for k, v in program.outputs.items()}


def _weight_of(node: g.Node, made: dict[g.Layer, Any], program: g.Program) -> Any:
    """A variable, or the layer's array of it."""
    for layer in layers_of(program):
        for bound in layer.bound.values():
            if bound.weights == [node.attrs["weight"]]:
                return bound.value()
    return node.attrs["weight"].value


def _called(node: g.Node, given: list[Any], made: dict[g.Layer, Any], training: bool) -> list[Any]:
    layer = node.layer
    if layer not in made:
        cls = getattr(keras.layers, layer.cls.removeprefix("layers."))
        made[layer] = keras_layer = cls(*layer.args, **layer.options)
        keras_layer.build(np.shape(given[0]))
        for path, bound in layer.bound.items():
            variable: Any = keras_layer
            for part in path.split("."):
                variable = getattr(variable, part)
            variable.assign(bound.value())
        assert len(keras_layer.weights) >= len(layer.bound)
    call = {k: training if v == g.TRAINING else v for k, v in layer.call.items()}
    values = dict(zip(node.inputs, given, strict=True))
    call = {k: values[v] if isinstance(v, g.Value) else v for k, v in call.items()}
    call = {k: [values[s] for s in v] if isinstance(v, list) else v for k, v in call.items()}
    result = made[layer](given[0], **call)
    return list(result) if isinstance(result, (list, tuple)) else [result]
