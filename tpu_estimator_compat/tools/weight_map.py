"""Copies TF1 variables to a hand-written Keras model: a mapping by name, copies, and a check."""

from __future__ import annotations

import difflib
import os
import zipfile
from collections.abc import Container, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint import diagnosis, state
from tpu_estimator_compat.engine.checkpoint.state import CheckpointSource, exists
from tpu_estimator_compat.engine.files import user_files

UNREADABLE = (OSError, ValueError, EOFError, zipfile.BadZipFile, tf.errors.OpError)
"""Errors of files that are missing, damaged or of another form."""

Values = Mapping[str, np.ndarray]
WeightMap = Mapping[str, Any]
"""Maps names in the checkpoint to paths of Keras variables, or to dicts: `variable`, the path;
`transpose`, a permutation of dimensions; `reshape`, true to take the Keras variable's shape."""


def read_variables(path: str) -> dict[str, np.ndarray]:
    """Values of a checkpoint's variables by name; ValueError where there is no checkpoint.

    `path` is a checkpoint, a model_dir, or a SavedModel's directory. Of a model_dir it reads what
    training would restore: the newest checkpoint, or with a warning the newest that is whole.
    Raises DataLossError where none is.
    """
    exported = os.path.join(path, "variables", "variables")
    if tf.io.gfile.exists(f"{exported}.index"):
        path = exported
    elif tf.io.gfile.isdir(path):
        values: dict[str, np.ndarray] = {}
        if not CheckpointSource(None, path).restore(lambda newest: values.update(_read(newest))):
            raise ValueError(f"No checkpoint and no SavedModel in {path}. Train or export first.")
        return values
    elif not exists(path):
        raise ValueError(
            f"No checkpoint {path}. Give its prefix, such as model_dir/model.ckpt-1000, a "
            "model_dir, or a SavedModel's directory."
        )
    return _read(path)


def _read(path: str) -> dict[str, np.ndarray]:
    with diagnosis.reading(path):
        return dict(state.read_all(path))


def propose(values: Values, model: keras.Model) -> dict[str, str]:
    """Proposes a mapping: pairs variables of equal shape, the most similar names first.

    Slots and averages, whose names continue the name of another variable, are left out. The result
    maps names in the checkpoint to paths in the built model, in the model's order. It may lack
    variables, and it may be wrong.
    """
    names = [name for name in values if not is_slot(name, values)]
    weights = _weights(model)
    pairs = [
        (-_similarity(name, path), abs(i / len(names) - j / len(weights)), name, path)
        for i, name in enumerate(names)
        for j, (path, weight) in enumerate(weights.items())
        if values[name].shape == tuple(weight.shape)
    ]
    found: dict[str, str] = {}
    for _, _, name, path in sorted(pairs):
        if path not in found and name not in found.values():
            found[path] = name
    return {found[path]: path for path in weights if path in found}


def is_slot(name: str, names: Container[str]) -> bool:
    """Whether a name continues another, as those of slots and averages do."""
    parts = name.split("/")
    return any("/".join(parts[:end]) in names for end in range(1, len(parts)))


def _similarity(name: str, path: str) -> float:
    return difflib.SequenceMatcher(None, name.lower(), path.lower(), autojunk=False).ratio()


def _weights(model: keras.Model) -> dict[str, keras.Variable]:
    """Weights of a model by path: no optimizer's variables, no states of random generators."""
    if not model.weights:
        raise ValueError(
            f"The Keras model {model.name!r} has no variables. Build it first: call it on a batch, "
            "or give its first layer an Input."
        )
    paths = [weight.path for weight in model.weights]
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise ValueError(
            f"Several variables of the Keras model {model.name!r} have the same path: {twice}. "
            "Give its layers different names."
        )
    return dict(zip(paths, model.weights, strict=True))


def assign(values: Values, model: keras.Model, mapping: WeightMap) -> list[str]:
    """Copies variables into a built Keras model, all of them or, after an error, none.

    The mapping must name every weight of the model. Returns the names in the checkpoint that the
    mapping lacks, without slots.

    Raises:
      ValueError: a name or path does not exist, a variable gets no value or two values, or a shape
        differs.
    """
    weights = _weights(model)
    targets = {name: _Target(name, entry) for name, entry in mapping.items()}
    _check_names("checkpoint", [*targets], values)
    _check_names("Keras model", [target.path for target in targets.values()], weights)
    _check_complete([target.path for target in targets.values()], weights)
    ready = [(weights[t.path], t.fitted(values[name], weights)) for name, t in targets.items()]
    for weight, value in ready:
        weight.assign(value)
    return [name for name in values if name not in mapping and not is_slot(name, values)]


class _Target:
    def __init__(self, name: str, entry: Any):
        options = dict(entry) if isinstance(entry, Mapping) else {"variable": entry}
        self.name = name
        self.path = options.pop("variable", None)
        self.transpose = options.pop("transpose", None)
        self.reshape = options.pop("reshape", False)
        if not isinstance(self.path, str) or options:
            raise ValueError(
                f"{name!r} is mapped to {entry!r}. Expected the path of a Keras variable, or a "
                "dict with `variable` and perhaps `transpose` and `reshape`."
            )

    def fitted(self, value: np.ndarray, weights: Mapping[str, keras.Variable]) -> np.ndarray:
        """The value in the shape of the Keras variable."""
        wanted = tuple(weights[self.path].shape)
        fitted = value if self.transpose is None else np.transpose(value, self.transpose)
        if self.reshape and fitted.size == np.prod(wanted):
            fitted = fitted.reshape(wanted)
        if fitted.shape != wanted:
            raise ValueError(
                f"{self.name!r} has shape {value.shape}, and {self.path!r} of the Keras model has "
                f"{wanted}. If a transpose or reshape makes them equal, add it to the mapping: "
                f'{{"variable": "{self.path}", "transpose": [1, 0]}} or "reshape": true.'
            )
        return fitted


def _check_names(where: str, wanted: Sequence[str], there: Mapping[str, Any]) -> None:
    if unknown := [name for name in wanted if name not in there]:
        raise ValueError(f"Not in the {where}: {unknown}. It has {sorted(there)}.")


def _check_complete(paths: list[str], weights: Mapping[str, keras.Variable]) -> None:
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise ValueError(f"Mapped to more than once: {twice}.")
    if missing := [path for path in weights if path not in paths]:
        raise ValueError(
            f"The mapping gives these variables of the Keras model no value: {missing}."
        )


def output_differences(
    saved_model: str,
    model: keras.Model,
    inputs: Values,
    signature: str = "serving_default",
    output: str | None = None,
) -> dict[str, float]:
    """The differences between the outputs of a Keras model and of an exported model.

    Args:
      saved_model: a SavedModel with a graph tagged `serve`.
      model: the Keras model, called on the one input, or on a dict of several.
      inputs: the signature's inputs by name.
      signature: the name of the signature to call.
      output: the signature's output to compare with, where the model returns a bare tensor and the
        signature has several.

    Returns:
      The largest difference of each output that both models have, by name: absolute for values
      below 1, relative above.

    Raises:
      ValueError: unknown signature, inputs or outputs, or shapes differ.
    """
    loaded = tf.saved_model.load(user_files.readable(saved_model), tags=["serve"])
    _check_names("SavedModel's signatures", [signature], dict(loaded.signatures))
    call = loaded.signatures[signature]
    _, wanted = call.structured_input_signature
    if set(inputs) != set(wanted):
        raise ValueError(f"Signature {signature!r} takes {sorted(wanted)}. Got {sorted(inputs)}.")
    fed = {name: tf.constant(value, wanted[name].dtype) for name, value in inputs.items()}
    expected = {name: value.numpy() for name, value in call(**fed).items()}
    named = len(fed) > 1 or isinstance(getattr(model, "input", None), dict)
    found = model(fed if named else next(iter(fed.values())), training=False)
    return _differences(_by_name(found, expected, output), expected)


def _by_name(found: Any, expected: Values, output: str | None) -> dict[str, Any]:
    if isinstance(found, dict):
        return {name: value for name, value in found.items() if name in expected}
    if output is None and len(expected) > 1:
        raise ValueError(
            f"The Keras model returns one tensor, and the signature has the outputs "
            f"{sorted(expected)}. Name the one to compare with, by `output` or --output."
        )
    name = output or next(iter(expected))
    _check_names("signature's outputs", [name], expected)
    return {name: found}


def _differences(found: Mapping[str, Any], expected: Values) -> dict[str, float]:
    if not found:
        raise ValueError(f"The Keras model has none of the outputs {sorted(expected)}.")
    differences = {}
    for name, value in found.items():
        actual, wanted = np.asarray(value), expected[name]
        if actual.shape != wanted.shape:
            raise ValueError(
                f"Output {name!r} of the Keras model has shape {actual.shape}, the exported one "
                f"{wanted.shape}."
            )
        actual, wanted = actual.astype(np.float64), wanted.astype(np.float64)
        error = np.abs(actual - wanted) / np.maximum(1.0, np.abs(wanted))
        differences[name] = float(np.max(error, initial=0.0))
    return differences
