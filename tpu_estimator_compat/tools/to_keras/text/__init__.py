"""Writes the file of a model: its classes, what makes it, and what trains it."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections import Counter
from collections.abc import Sequence
from textwrap import wrap

import keras

from tpu_estimator_compat.tools.to_keras import helpers
from tpu_estimator_compat.tools.to_keras.classes import Part, divide
from tpu_estimator_compat.tools.to_keras.graph import Bound, Program, Value, Weight
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.text.body import Body, Made, indexed
from tpu_estimator_compat.tools.to_keras.text.builder import Builder
from tpu_estimator_compat.tools.to_keras.text.equal import Class, classes_of, single
from tpu_estimator_compat.tools.to_keras.text.layout import lay_out
from tpu_estimator_compat.tools.to_keras.text.naming import identifier
from tpu_estimator_compat.tools.to_keras.training import Training

_OF_TENSORFLOW = re.compile(r"\btf\.")
Methods = list[tuple[str, Body]]
"""Heads and bodies of methods."""
_TITLE = "A Keras model, written of a TensorFlow graph by to-keras."


@dataclasses.dataclass
class Written:
    """A file's text, and by the attribute path in its model, what each weight is made of."""

    text: str
    weights: dict[str, Bound]


def write(
    program: Program,
    training: Training | None = None,
    title: str = _TITLE,
    notes: Sequence[str] = (),
) -> Written:
    """Writes the file of a program, and of what trains it."""
    root = divide(program)
    made: dict[Part, Made] = {}
    classes = classes_of(root, made)
    builder = Builder(root, made)
    body = builder.as_model(program)
    model = single(body, "Model")
    methods = _methods(builder, _attributes(model, training), training) if training else []
    model = single(body, "Model")  # the loss may take further weights
    sources = training.classes if training else []
    code = [line for each in sources for line in ["", "", *each.strip().splitlines()]]
    code += [line for cls in classes for line in _class(cls, "layers.Layer")]
    code += _model(model, program, training, methods)
    code += _make_model(training)
    code = [*helpers.sources(code), *code]
    return Written(_file(_marked(code), title, notes), dict(model.weights(root)))


def _marked(code: list[str]) -> list[str]:
    """With a comment where a statement needs TensorFlow."""
    found = []
    for before, line in itertools.pairwise(["", *code]):
        if _OF_TENSORFLOW.search(line) and not _OF_TENSORFLOW.search(before):
            indent = line[: len(line) - len(line.lstrip())]
            found.append(f"{indent}# By TensorFlow, since Keras has no such operation:")
        found.append(line)
    return found


def _methods(builder: Builder, attributes: list[str], training: Training) -> Methods:
    """The heads and bodies of what computes the loss and updates the metrics."""
    found = []
    if training.loss is not None:
        head = (
            "def compute_loss("
            "self, x=None, y=None, y_pred=None, sample_weight=None, training=True):"
        )
        found.append((head, builder.as_method(training.loss, ["return {loss}"])))
    if training.metrics:
        outputs: dict[str, Value] = {}
        ends = []
        for i, (attribute, metric) in enumerate(zip(attributes, training.metrics, strict=True)):
            given = [f"metric_{i}_{name}" for name in metric.program.outputs]
            outputs.update(zip(given, metric.program.outputs.values(), strict=True))
            texts = [f"{name.split('_', 2)[2]}={{{name}}}" for name in given]
            ends.append(f"self.{attribute}.update_state({', '.join(texts)})")
        inputs = {k: v for each in training.metrics for k, v in each.program.inputs.items()}
        labels = {k: v for each in training.metrics for k, v in each.program.labels.items()}
        program = Program(inputs, outputs, labels)
        body = builder.as_method(program, [*ends, "return self.get_metrics_result()"])
        found.append(("def compute_metrics(self, x, y, y_pred, sample_weight=None):", body))
    return found


def _file(code: list[str], title: str, notes: Sequence[str]) -> str:
    text = "\n".join(lay_out(code)) + "\n"
    said = [line for note in notes for line in ["", *wrap(note, 98)]]
    head = [f'"""{title}', *said, '"""'] if said else [f'"""{title}"""']
    used = [name for name in ("layers", "ops") if re.search(rf"\b{name}\.", text)]
    modules = [
        name for name in ("math", "numpy as np") if re.search(rf"\b{name.split()[-1]}\.", text)
    ]
    head += ["", *(f"import {name}" for name in modules), *[""] * bool(modules), "import keras"]
    needed = sorted(set(re.findall(r"\btf\.[\w.]+", text)))
    head += ["import tensorflow as tf"] if needed else []
    head += [f"from keras import {', '.join(used)}"] if used else []
    if needed:
        says = f"Set KERAS_BACKEND=tensorflow. This model has {', '.join(needed)}."
        head += ["", 'if keras.backend.backend() != "tensorflow":', "    raise ImportError("]
        head += [f'        "{part}"' for part in wrap(says, 88, drop_whitespace=False)]
        head += ["    )"]
    return "\n".join(head) + "\n" + text


def _class(cls: Class, base: str) -> list[str]:
    call = cls.call()
    takes = ", training=False" if cls.trains else ""
    given = [cls.names[token] for token in cls.body.params]
    head = f"    def call({', '.join(['self', *given])}{takes}):"
    return [
        "",
        "",
        f"class {cls.name}({base}):",
        f'    """{_place(cls)}"""',
        "",
        *_constructor(cls, call, []),
        "",
        head,
        *(f"        {line}" for line in call),
    ]


def _constructor(cls: Class, call: list[str], more: list[str]) -> list[str]:
    lines = cls.constructor()
    if any("self.seed_generator" in line for line in call):
        lines.append("self.seed_generator = keras.random.SeedGenerator()")
    return [
        f"    def __init__({', '.join(['self', *cls.parameters, '**kwargs'])}):",
        "        super().__init__(**kwargs)",
        *(f"        {line}" for line in [*lines, *more]),
    ]


def _model(
    model: Class, program: Program, training: Training | None, methods: Methods
) -> list[str]:
    inputs = []
    for key, value in program.inputs.items():
        shape = value.shape or ()
        given = literal(shape[1:]) if shape[:1] == (None,) else f"batch_shape={literal(shape)}"
        dtype = "" if value.dtype == "float32" else f', dtype="{value.dtype}"'
        inputs.append(f"{literal(key)}: keras.Input({given}{dtype})")
    metrics = zip(_attributes(model, training), training.metrics if training else (), strict=True)
    bodies = [model.call(), *(single(method, "").call() for _, method in methods)]
    code = [
        "",
        "",
        '@keras.saving.register_keras_serializable("model")',
        "class Model(keras.Model):",
        *_constructor(
            model,
            [line for lines in bodies for line in lines],
            [
                *(f"self.{name} = {metric.made.text}" for name, metric in metrics),
                f"self({{{', '.join(inputs)}}})  # makes the weights",
                *_frozen(model),
            ],
        ),
    ]
    heads = ["def call(self, features, training=False):", *(head for head, _ in methods)]
    for head, lines in zip(heads, bodies, strict=True):
        code += ["", f"    {head}", *(f"        {line}" for line in lines)]
    return code


def _frozen(model: Class) -> list[str]:
    """Keeps the variables that the original does not train."""
    weights = [
        (path, bound.weights)
        for path, bound in model.weights(model.body.part)
        if not path.endswith(("moving_mean", "moving_variance"))
    ]
    if not any(weight.trainable for _, found in weights for weight in found):
        return []  # of an export that does not say
    kept = [path for path, found in weights if not any(weight.trainable for weight in found)]
    own = {path for path, thing in model.things(model.body.part) if isinstance(thing, Weight)}
    return [f"self.{indexed(path)}.trainable = False" for path in kept if path not in own]


def _attributes(model: Class, training: Training | None) -> list[str]:
    """Those of the metrics."""
    taken = {*model.names.values(), *dir(keras.Model)}
    names = [identifier(metric.name) for metric in training.metrics] if training else []
    return [f"{name}_metric" if name in taken else name for name in names]


def _place(cls: Class) -> str:
    """Where in the author's program a class comes from."""
    places = [node.place.rpartition(":") for node in cls.body.part.nodes() if node.place]
    at = ""
    if places:
        ((file, _),) = Counter(file for file, _, _ in places).most_common(1)
        at = f", {os.path.basename(file)}:{min(int(n) for each, _, n in places if each == file)}"
    if cls.body.part.is_run:
        return f"Equal runs of layers{at}."
    scope = "/".join((*cls.body.part.scope[:-1], cls.body.part.name))
    return f"The scope {scope}{at}."


def _make_model(training: Training | None) -> list[str]:
    if training is None:
        return ["", "", "def make_model():", "    return Model()"]
    optimizer = training.optimizer.text if training.optimizer else ""
    build = "        model.optimizer.build(model.trainable_variables)"
    return [
        "",
        "",
        "def make_model(compiled=False):",
        "    model = Model()",
        "    if compiled:",
        f"        model.compile({optimizer or 'optimizer=None'})",
        *([build] if optimizer else []),
        "    return model",
    ]
