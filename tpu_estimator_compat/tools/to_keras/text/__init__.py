"""Writes the file of a model: one class, without divisions, as long as nothing better is there."""

from __future__ import annotations

import dataclasses
import re

from tpu_estimator_compat.tools.to_keras.graph import (
    CONSTANT,
    LAYER,
    SOURCES,
    Bound,
    Node,
    Program,
    Value,
    Weight,
)
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.operations import FIRST_ALONE, expression


@dataclasses.dataclass
class Written:
    """A file's text, and by the attribute path in its model, what each weight is made of."""

    text: str
    weights: dict[str, Bound]


def write(program: Program) -> Written:
    flat = _Flat()
    return flat.write(program)


class _Flat:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.used: set[str] = set()
        self.init: list[str] = []
        self.lines: list[str] = []
        self.weights: dict[str, Bound] = {}
        self.layers: dict[int, str] = {}

    def fresh(self, base: str) -> str:
        base = re.sub(r"\W", "_", base).lower().strip("_") or "x"
        name, i = base, 1
        while name in self.used or name[0].isdigit():
            i += 1
            name = f"v_{base}_{i}"
        self.used.add(name)
        return name

    def write(self, program: Program) -> Written:
        for node in program.nodes():
            texts = [self.text(v) for v in node.inputs]
            if node.kind in SOURCES:
                if node.kind == "Input":
                    self.names[node.outputs[0]] = f"features[{node.attrs['key']!r}]"
                continue
            made = self.layer(node, texts) if node.kind == LAYER else expression(node, texts)
            name = self.fresh(node.name.split("/")[-1])
            self.lines.append(f"{name} = {made}")
            several = len(node.outputs) > 1 and node.kind not in FIRST_ALONE
            for value in node.outputs:
                self.names[value] = f"{name}[{value.index}]" if several else name
        result = {k: self.text(v) for k, v in program.outputs.items()}
        return self.file(program, result)

    def text(self, value: Value) -> str:
        if value in self.names:
            return self.names[value]
        if value.node.kind == CONSTANT:
            array = value.constant
            assert array is not None
            if array.ndim == 0 and array.dtype.kind in "biufSU":
                return literal(array)
            if array.size <= 16:
                return f'ops.convert_to_tensor({literal(array)}, "{value.dtype}")'
            weight = Weight(value.node.name, array.shape, array.dtype.name, False, array)
        else:
            assert value.weight is not None
            weight = value.weight
        name = self.fresh(weight.name.replace("/", "_"))
        self.init.append(
            f"self.{name} = self.add_weight(shape={weight.shape}, dtype={weight.dtype!r}, "
            f"trainable={weight.trainable}, name={name!r})"
        )
        self.weights[name] = Bound([weight])
        self.names[value] = f"self.{name}"
        return self.names[value]

    def layer(self, node: Node, texts: list[str]) -> str:
        layer = node.layer
        if id(layer) not in self.layers:
            name = self.layers[id(layer)] = self.fresh("_".join([*layer.scope, layer.name]))
            options = {**layer.options, "name": name}
            given = [*map(literal, layer.args), *(f"{k}={literal(v)}" for k, v in options.items())]
            self.init.append(f"self.{name} = {layer.cls}({', '.join(given)})")
            self.weights.update({f"{name}.{k}": v for k, v in layer.bound.items()})
        call = {
            k: self.text(v) if isinstance(v, Value) else literal(v) for k, v in layer.call.items()
        }
        call = {k: v for k, v in call.items() if k != "training"}
        taken = [t for v, t in zip(node.inputs, texts, strict=True) if v not in layer.call.values()]
        given = [*taken, *(f"{k}={v}" for k, v in call.items())]
        return f"self.{self.layers[id(layer)]}({', '.join(given)})"

    def file(self, program: Program, result: dict[str, str]) -> Written:
        returned = ", ".join(f"{k!r}: {v}" for k, v in result.items())
        specs = ", ".join(
            f"{k!r}: keras.Input({(v.shape or ())[1:]}, dtype={v.dtype!r}, name={k!r})"
            for k, v in program.inputs.items()
        )
        lines = [
            "import keras",
            "from keras import layers, ops",
            *(["import tensorflow as tf"] if any("tf." in line for line in self.lines) else []),
            "",
            "@keras.saving.register_keras_serializable()",
            "class Model(keras.Model):",
            "    def __init__(self, **kwargs):",
            "        super().__init__(**kwargs)",
            *(f"        {line}" for line in self.init),
            "",
            "    def call(self, features, training=False):",
            *(f"        {line}" for line in self.lines),
            f"        return {{{returned}}}",
            "",
            "def make_model():",
            "    model = Model()",
            f"    model({{{specs}}})",
            "    return model",
        ]
        return Written("\n".join(lines) + "\n", self.weights)
