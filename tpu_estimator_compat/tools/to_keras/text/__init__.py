"""Writes the file of a model: its classes, what makes it, and what trains it."""

from __future__ import annotations

import dataclasses
import re

from tpu_estimator_compat.tools.to_keras.classes import Part, divide
from tpu_estimator_compat.tools.to_keras.graph import Bound, Program
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.text.body import Builder, Made
from tpu_estimator_compat.tools.to_keras.text.equal import Class, classes_of, signature, single
from tpu_estimator_compat.tools.to_keras.text.layout import lay_out


@dataclasses.dataclass
class Written:
    """A file's text, and by the attribute path in its model, what each weight is made of."""

    text: str
    weights: dict[str, Bound]


def write(
    program: Program, title: str = "A model that was led out of a TensorFlow graph."
) -> Written:
    root = divide(program)
    made: dict[Part, Made] = {}
    classes = classes_of(root, made)
    builder = Builder(root, made, program.inputs)
    returned = [f"{literal(k)}: {builder.ref(v)}" for k, v in program.outputs.items()]
    builder.finish(f"{{{', '.join(returned)}}}")
    model = single(builder.body, "Model")
    code = [line for cls in classes for line in _class(cls, "layers.Layer", _doc(cls))]
    code += ["", "", '@keras.saving.register_keras_serializable("model")']
    code += _class(model, "keras.Model", "")[2:]
    code += _functions(program)
    text = "\n".join(lay_out(code)) + "\n"
    head = [f'"""{title}"""', "", "import keras"]
    used = [name for name in ("layers", "ops") if re.search(rf"\b{name}\.", text)]
    head += ["import tensorflow as tf"] if re.search(r"\btf\.", text) else []
    head += [f"from keras import {', '.join(used)}"] if used else []
    return Written("\n".join(head) + "\n" + text, dict(model.weights(root)))


def _class(cls: Class, base: str, doc: str) -> list[str]:
    lines, call = cls.constructor(), cls.call()
    training = ", training=False" if any(re.search(r"\btraining\b", x) for x in call) else ""
    given = [cls.names[token] for token in cls.body.params] or ["inputs"]
    if any("self.seed_generator" in line for line in call):
        lines.append("self.seed_generator = keras.random.SeedGenerator()")
    if base == "keras.Model":
        lines.append("self(inputs())  # makes the weights")
    return [
        "",
        "",
        f"class {cls.name}({base}):",
        *([f'    """{doc}"""', ""] if doc else []),
        f"    def __init__({signature(cls)}):",
        "        super().__init__(**kwargs)",
        *(f"        {line}" for line in lines),
        "",
        f"    def call(self, {', '.join(given)}{training}):",
        *(f"        {line}" for line in call),
    ]


def _doc(cls: Class) -> str:
    nodes = [n for n in cls.body.part.nodes() if n.place]
    scope = "/".join(cls.body.part.scope)
    return f"{scope} ({nodes[0].place})." if nodes else f"{scope}."


def _functions(program: Program) -> list[str]:
    inputs = []
    for key, value in program.inputs.items():
        shape = value.shape or ()
        given = literal(shape[1:]) if shape[:1] == (None,) else f"batch_shape={literal(shape)}"
        dtype = "" if value.dtype == "float32" else f', dtype="{value.dtype}"'
        inputs.append(f"{literal(key)}: keras.Input({given}{dtype}, name={literal(key)})")
    return [
        "",
        "",
        "def inputs():",
        '    """The features by name."""',
        f"    return {{{', '.join(inputs)}}}",
        "",
        "",
        "def make_model():",
        "    return Model()",
    ]
