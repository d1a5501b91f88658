"""A Keras model that does what a `Training` says, without text in between."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras import script
from tpu_estimator_compat.tools.to_keras.layers import recognize
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.operations import FIRST_ALONE, expression
from tpu_estimator_compat.tools.to_keras.scans import find_scans
from tpu_estimator_compat.tools.to_keras.simplify import simplify
from tpu_estimator_compat.tools.to_keras.training.describing import describe
from tpu_estimator_compat.tools.to_keras.training.steps import step_of


def led_out(model_fn, input_fn, folder, steps=3):
    """The modes of an estimator after some steps of training, and what they say of it."""
    estimator = Estimator(model_fn, str(folder))
    if steps:
        estimator.train(input_fn, steps=steps)
    modes = script.of_estimator(estimator, input_fn)

    def prepare(program):
        simplify(program)
        find_scans(program)
        recognize(program, modes.weights)

    return modes, describe(modes, step_of(modes), prepare)


def original(modes, count, mode=ModeKeys.TRAIN):
    """The next losses of the original's own training, on the first batch."""
    mode = modes.modes[mode]
    spec = mode.captured.spec
    return [mode.run([spec.loss, spec.train_op])[0] for _ in range(count)]


class Described(keras.Model):
    """The model; `bound` has its variables and what they are made of."""

    def __init__(self, training):
        super().__init__()
        self.described = training
        self.names = {"keras": keras, "layers": layers, "ops": ops, "tf": tf}
        for source in training.classes:
            exec(source, self.names)
        self.made, self.bound = {}, []
        programs = [training.program, training.loss, *(m.program for m in training.metrics)]
        nodes = list(dict.fromkeys(n for program in programs for n in program.nodes()))
        for node in (n for n in nodes if n.kind == g.LAYER):
            if node.layer not in self.made:
                self.made[node.layer] = self._layer(node)
        owned = {b.weights[0].name: v for v, b in self.bound if b.make is None}
        for weight in (n.attrs["weight"] for n in nodes if n.kind == g.WEIGHT):
            if weight.name not in owned:
                variable = self.add_weight(shape=weight.shape, trainable=weight.trainable)
                variable.assign(weight.value)
                self.bound.append((variable, g.Bound([weight])))
                owned[weight.name] = variable
        self.owned = owned
        self.found = [(eval(m.made.text, self.names), m.program) for m in training.metrics]
        self.built = True

    def _layer(self, node):
        layer = node.layer
        options = {
            k: eval(v.text, self.names) if isinstance(v, g.Code) else v
            for k, v in layer.options.items()
        }
        made = eval(layer.cls, self.names)(*layer.args, **options)
        made.build(node.inputs[0].shape)
        for path, bound in layer.bound.items():
            variable = made
            for part in path.split("."):
                variable = getattr(variable, part)
            variable.assign(bound.value())
            variable.trainable = all(weight.trainable for weight in bound.weights)
            self.bound.append((variable, bound))
        return made

    def call(self, x, training=False):
        return self._run(self.described.program, x=x, training=training)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        given = {"x": x, "y": y, "y_pred": y_pred, "training": training}
        return self._run(self.described.loss, **given)["loss"]

    def evaluated(self, x, y):
        """The metrics of one batch."""
        y_pred = self(x, training=False)
        for metric, program in self.found:
            metric.update_state(*self._run(program, x=x, y=y, y_pred=y_pred).values())
        return {metric.name: float(metric.result()) for metric, _ in self.found}

    def _run(self, program, **given):
        names, texts = {**self.names, **given, "self": self}, {}
        for i, node in enumerate(program.nodes()):
            if node.kind in (g.INPUT, g.LABEL):
                text = node.attrs.get("text", f'x["{node.attrs["key"]}"]')
            elif node.kind == g.WEIGHT:
                names[f"w{i}"] = self.owned[node.attrs["weight"].name]
                text = f"w{i}"
            elif node.kind == g.CONSTANT:
                names[f"c{i}"] = node.attrs["value"]
                text = literal(node.attrs["value"]) if node.attrs["value"].ndim == 0 else f"c{i}"
            else:
                inputs = [texts[value] for value in node.inputs]
                text = (
                    self._call(node, inputs) if node.kind == g.LAYER else expression(node, inputs)
                )
            names[f"v{i}"] = eval(text, names)
            several = len(node.outputs) > 1 and node.kind not in FIRST_ALONE
            for value in node.outputs:
                texts[value] = f"v{i}[{value.index}]" if several else f"v{i}"
            if node.kind == g.CONSTANT:
                texts[node.outputs[0]] = text
            if node.kind == g.SIZES:
                texts[node.outputs[0]] = text
        return {k: eval(texts[v], names) for k, v in program.outputs.items()}

    def _call(self, node, inputs):
        call = [f"{k}={v.text}" for k, v in node.layer.call.items()]
        number = list(self.made).index(node.layer)
        return f"list(self.made.values())[{number}]({', '.join([*inputs, *call])})"

    def ready(self):
        """Compiles the model, with the slots of the optimizer."""
        self.compile(optimizer=eval(self.described.optimizer.text, self.names))
        self.optimizer.build(self.trainable_variables)
        self.optimizer.iterations.assign(self.described.step)
        bound = {id(variable): each for variable, each in self.bound}
        for attribute, arrays in self.described.slots.items():
            for slot, variable in zip(
                getattr(self.optimizer, attribute), self.trainable_variables, strict=True
            ):
                each = bound[id(variable)]
                given = [arrays[weight.name] for weight in each.weights]
                slot.assign(each.make(*given) if each.make else given[0])
        return self


def losses(modes, training, count):
    """The next losses of the Keras model, on the first batch."""
    model = Described(training).ready()
    found = []
    for _ in range(count):
        model.reset_metrics()
        found.append(model.train_on_batch(modes.features, modes.labels, return_dict=True)["loss"])
    return np.array(found)
