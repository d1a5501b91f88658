"""Writes the file of a model: its classes, what makes it, and what trains it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from textwrap import wrap

import keras

from tpu_estimator_compat.tools.to_keras import helpers
from tpu_estimator_compat.tools.to_keras.classes import divide
from tpu_estimator_compat.tools.to_keras.graph import Bound, Program, Weight
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.text.body import Body, indexed
from tpu_estimator_compat.tools.to_keras.text.builder import Builder
from tpu_estimator_compat.tools.to_keras.text.equal import Class, classes_of, single
from tpu_estimator_compat.tools.to_keras.text.layout import lay_out
from tpu_estimator_compat.tools.to_keras.text.naming import identifier
from tpu_estimator_compat.tools.to_keras.training import Metric, Training

_TITLE = "A Keras model, written of a TensorFlow graph by to-keras."


@dataclasses.dataclass
class Written:
    """A program as a file; by the attribute path in its model, what each weight is made of."""

    text: str
    weights: dict[str, Bound]
    program: Program
    training: Training | None
    notes: Sequence[str]


def write(program: Program, training: Training | None = None, notes: Sequence[str] = ()) -> Written:
    """Writes the file of a program, and of what trains it."""
    root = divide(program)
    made = classes_of(root)
    builder = Builder(root, made)
    body = builder.as_model(program)
    taken = {*single(body, "Model").names.values(), *dir(keras.Model)}
    metrics: dict[str, Metric] = {}
    for each in training.metrics if training else ():
        name = identifier(each.name)
        while name in taken or name in metrics:
            name = f"{name}_metric"
        metrics[name] = each
    methods = _methods(builder, metrics, training)
    model = single(body, "Model")  # the loss may take further weights
    sources = dict.fromkeys(training.classes) if training else ()
    code = [line for each in sources for line in ["", "", *each.strip().splitlines()]]
    code += [line for cls in dict.fromkeys(made.values()) for line in _class(cls)]
    code += _model(model, program, metrics, methods)
    code += _make_model(training)
    code = [*helpers.sources(code), *code]
    text = _file(_marked(code), notes)
    return Written(text, dict(model.weights(root)), program, training, notes)


def _marked(code: list[str]) -> list[str]:
    """With a comment where a statement needs TensorFlow."""
    found = []
    needing = of_tensorflow("\n".join(code))
    for number, line in enumerate(code, 1):
        if number in needing and number - 1 not in needing:
            indent = line[: len(line) - len(line.lstrip())]
            found.append(f"{indent}# By TensorFlow, since Keras has no such operation:")
        found.append(line)
    return found


def of_tensorflow(code: str) -> dict[int, set[str]]:
    """By line, from 1 on, the names of TensorFlow in it: not those in strings and comments."""
    found: dict[int, set[str]] = {}
    inner: set[ast.AST] = set()
    for node in ast.walk(ast.parse(code)):  # breadth first: `tf.a.b` before its `tf.a`
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            inner.add(node.value)
            if node not in inner and name.startswith("tf."):
                found.setdefault(node.lineno, set()).add(name)
    return found


def _methods(
    builder: Builder, metrics: dict[str, Metric], training: Training | None
) -> dict[str, Body]:
    """By head, the bodies of what computes the loss and updates the metrics."""
    found = {}
    if training and training.loss is not None:
        given = "self, x=None, y=None, y_pred=None, sample_weight=None, training=True"
        found[f"compute_loss({given})"] = builder.as_method(training.loss, ["return {loss}"])
    if metrics:
        program, ends = Program({}, {}), []
        for i, (attribute, metric) in enumerate(metrics.items()):
            one = metric.program
            program.inputs |= one.inputs
            program.labels |= one.labels
            program.outputs |= {f"{name}_{i}": value for name, value in one.outputs.items()}
            texts = ", ".join(f"{name}={{{name}_{i}}}" for name in one.outputs)
            ends.append(f"self.{attribute}.update_state({texts})")
        body = builder.as_method(program, [*ends, "return self.get_metrics_result()"])
        found["compute_metrics(self, x, y, y_pred, sample_weight=None)"] = body
    return found


def _file(code: list[str], notes: Sequence[str]) -> str:
    text = "\n".join(lay_out(code)) + "\n"
    paths = functools.partial(wrap, width=98, break_long_words=False, break_on_hyphens=False)
    said = [line for note in notes for line in ["", *paths(note)]]
    head = [f'"""{_TITLE}', *said, '"""'] if said else [f'"""{_TITLE}"""']
    used = [name for name in ("layers", "ops") if re.search(rf"\b{name}\.", text)]
    head += ["", "import keras"]
    needed = sorted(set().union(*of_tensorflow(text).values()))
    head += ["import tensorflow as tf"] if needed else []
    head += [f"from keras import {', '.join(used)}"] if used else []
    if needed:
        says = f"Set KERAS_BACKEND=tensorflow. This model has {', '.join(needed)}."
        head += ["", 'if keras.backend.backend() != "tensorflow":', "    raise ImportError("]
        head += [f'        "{part}"' for part in wrap(says, 88, drop_whitespace=False)]
        head += ["    )"]
    return "\n".join(head) + "\n" + text


def _class(cls: Class) -> list[str]:
    takes = ["training=False"] if cls.trains else []
    given = ", ".join(["self", *(cls.names[token] for token in cls.body.params), *takes])
    docstring = wrap(f'"""{_place(cls)}"""', 94, break_long_words=False)
    head = [f"class {cls.name}(layers.Layer):", *(f"    {line}" for line in docstring), ""]
    return _lines(head, cls.parameters, cls.constructor(), {f"call({given})": cls.call()})


def _model(
    model: Class, program: Program, metrics: dict[str, Metric], bodies: dict[str, Body]
) -> list[str]:
    inputs = []
    for key, value in program.inputs.items():
        shape = value.shape or ()
        given = literal(shape[1:]) if shape[:1] == (None,) else f"batch_shape={literal(shape)}"
        dtype = "" if value.dtype == "float32" else f', dtype="{value.dtype}"'
        inputs.append(f"{literal(key)}: keras.Input({given}{dtype})")
    made = [
        *model.constructor(),
        *(f"self.{name} = {metric.made.text}" for name, metric in metrics.items()),
        f"self({{{', '.join(inputs)}}})  # makes the weights",
        *_frozen(model),
    ]
    methods = {"call(self, features, training=False)": model.call()}
    methods |= {head: single(body, "").call() for head, body in bodies.items()}
    registered = '@keras.saving.register_keras_serializable("model")'
    return _lines([registered, "class Model(keras.Model):"], [], made, methods)


def _lines(
    head: list[str], parameters: Iterable[str], made: list[str], methods: dict[str, list[str]]
) -> list[str]:
    """The lines of a class."""
    if any("self.seed_generator" in line for lines in methods.values() for line in lines):
        made = ["self.seed_generator = keras.random.SeedGenerator()", *made]
    given = ", ".join(["self", *parameters, "**kwargs"])
    methods = {f"__init__({given})": ["super().__init__(**kwargs)", *made], **methods}
    code = ["", "", *head]
    for i, (name, lines) in enumerate(methods.items()):
        code += [*[""] * bool(i), f"    def {name}:", *(f"        {line}" for line in lines)]
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


def _place(cls: Class) -> str:
    """Where in the author's program a class comes from."""
    places = [node.place.rpartition(":") for node in cls.body.part.nodes() if node.place]
    at = ""
    if places:
        ((file, _),) = Counter(file for file, _, _ in places).most_common(1)
        at = f", {os.path.basename(file)}:{min(int(n) for each, _, n in places if each == file)}"
    if cls.body.part.is_run:
        return f"Equal runs of layers{at}."
    scope = "/".join((*cls.body.part.scope[:-1], cls.body.part.scope_name))
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
