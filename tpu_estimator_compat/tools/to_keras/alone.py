"""Runs a written model with Keras alone: `python alone.py FOLDER`, where nothing else is imported.

FOLDER has `model.py` and `given.pickle`, a dict: `compiled`; `weights`, arrays by attribute path;
`slots`, by an attribute of the optimizer, such as "_momentums", arrays by path; `step`; `features`,
batches; `labels` of the first, or None; `losses`, the values of `training` to compute one for, each
with the weights to do it for; `evaluates`, whether there are metrics.

It writes `model.weights.h5` and `found.pickle`, a dict: `outputs`, of each batch; `metrics`, of the
first; `losses`, by the value of `training`, for each of its weights the loss of the first batch and
the gradients by path. Or `error`, the line of the model that failed and why.
"""

import importlib.util
import linecache
import pathlib
import pickle
import re
import sys
import traceback

import keras
import numpy as np
import tensorflow as tf


def variable_at(model, path):
    """The variable at a path such as "encoder.blocks[0].kernel"."""
    found = model
    for step in re.findall(r"\w+", path):
        found = found[int(step)] if step.isdigit() else getattr(found, step)
    return found


def fill(model, given):
    """Gives all variables of the model and of its optimizer their values."""
    variables = {path: variable_at(model, path) for path in given["weights"]}
    assign(variables, given["weights"])
    if left := [v.path for v in model.weights if all(v is not x for x in variables.values())]:
        raise ValueError(f"These weights of the model have no variable: {left}")
    if given["compiled"] and model.optimizer is not None:
        model.optimizer.build(model.trainable_variables)
        for attribute, arrays in given["slots"].items():
            slots = getattr(model.optimizer, attribute)
            for path, array in arrays.items():
                index = [v is variables[path] for v in model.trainable_variables].index(True)
                slots[index].assign(array)
        model.optimizer.iterations.assign(given["step"])
    return variables


def assign(variables, weights):
    for path, array in weights.items():
        variables[path].assign(array)


def loss_and_gradients(model, variables, given, training):
    """Of the first batch; in training, dropout keeps and scales all, as in the original's graph."""
    for layer in model._flatten_layers() if training else ():
        if isinstance(layer, keras.layers.Dropout):
            layer.call = lambda x, training=False, kept=1 - layer.rate: x / kept if training else x
    x = given["features"][0]
    with tf.GradientTape() as tape:
        # As Keras' own steps on JAX call it: layers that are not told would be in inference mode.
        y_pred = model.call(x, **({"training": training} if model._call_has_training_arg else {}))
        loss = model.compute_loss(x=x, y=given["labels"], y_pred=y_pred, training=training)
    trained = {path: v.value for path, v in variables.items() if v.trainable}
    gradients = tape.gradient(loss, trained, unconnected_gradients="zero")
    return float(loss), {path: np.asarray(tf.convert_to_tensor(g)) for path, g in gradients.items()}


def run(folder, given):
    spec = importlib.util.spec_from_file_location("model", folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.make_model(compiled=True) if given["compiled"] else module.make_model()
    variables = fill(model, given)
    model.save_weights(folder / "model.weights.h5")
    outputs = [
        {name: np.asarray(value) for name, value in model(features, training=False).items()}
        for features in given["features"]
    ]
    metrics = {}
    if given["evaluates"]:
        metrics = model.test_on_batch(given["features"][0], given["labels"], return_dict=True)
    losses = {training: [] for training in given["losses"]}
    for training, points in given["losses"].items():
        for weights in points:
            assign(variables, weights)
            losses[training].append(loss_and_gradients(model, variables, given, training))
    return {"outputs": outputs, "metrics": metrics, "losses": losses}


def main(folder):
    keras.config.disable_traceback_filtering()  # which adds to the words of errors
    try:
        found = run(folder, pickle.loads((folder / "given.pickle").read_bytes()))
    except Exception as error:
        file = str(folder / "model.py")
        lines = [
            n for f, n in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename == file
        ]
        place = (
            f"Line {lines[-1]}, {linecache.getline(file, lines[-1]).strip()!r}: " if lines else ""
        )
        words = (str(error).splitlines() or [""])[0]
        found = {"error": f"{place}{type(error).__name__}: {words}"}
    (folder / "found.pickle").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
