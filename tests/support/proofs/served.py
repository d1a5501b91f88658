"""Rows by what serves them: which are what they say, and which need a proof of their own."""

import importlib
import operator
import types
from typing import Any

from support.proofs import proved_rows
from tpu_estimator_compat.old_names.legacy import namespaces, overlay, table
from tpu_estimator_compat.old_names.legacy.table import DeadName, Status

ROWS = table.load().rows
SERVED = {name: row for name, row in ROWS.items() if row.status is not Status.REFUSED}

_OURS = "tpu_estimator_compat"
_NAMESPACES = f"{_OURS}.v1."  # modules that consist of other rows
_TESTED = tuple(f"{_OURS}.{room}." for room in ("config", "embedding", "estimator", "spec"))
"""Rooms whose public names have tests of their own: a row gives the same thing."""

RENAMED = {
    "is_sequence": "is_nested",
    "is_sequence_or_composite": "is_nested_or_composite",
    "defun": "function",
    "py_func": "py_function",
    "Variable": "ResourceVariable",
    "variable": "VariableV1",
    "constant_value": "get_static_value",
    "quantize_v2": "quantize",
    "stateless_random_normal": "stateless_normal",
    "stateless_random_truncated_normal": "stateless_truncated_normal",
    "stateless_random_uniform": "stateless_uniform",
    "_create_global_step": "create_global_step",
    "Network": "Functional",
    "_pywrap_utils": "_pywrap_utils_exp",
    "pywrap_tensorflow_internal": "pywrap_tensorflow",
}
"""Today's names of what other packages still have by another name."""

MODULES = {
    "tensorflow.compat.v1.data": "Dataset Iterator TFRecordDataset",
    "tensorflow.python.checkpoint.checkpoint": "Checkpoint",
    "tensorflow.python.distribute.distribute_lib": "get_strategy has_strategy",
    "tensorflow.python.ops.gen_audio_ops": "decode_wav audio_spectrogram mfcc",
    "tensorflow.python.ops.gen_training_ops": "resource_apply_gradient_descent",
    "tensorflow.python.trackable.autotrackable": "AutoTrackable",
    "tf_keras": "Model layers",
    "tf_keras.api._v1.keras.layers": "Dense BatchNormalization LSTM Embedding Bidirectional",
    "tf_keras.src": "Sequential backend engine layers utils",
    "tf_keras.src.engine.functional": "Functional",
    "tf_keras.src.layers.rnn.legacy_cells": "LSTMCell GRUCell MultiRNNCell",
    "tf_keras.src.optimizers.legacy": "adam optimizer_v2",
    "tf_keras.src.saving.legacy": "hdf5_format save",
}
"""Modules of other packages with another name than the row's, and names that scripts took there."""

DIFFERENT = {
    "tensorflow_estimator": "the package lacks names of its own that have no rows",
    "tf.contrib.framework.python.ops.arg_scope": "a function was in the module's place",
    "tf.contrib.gan": "it imports a package that may not be installed",
}
"""Modules that do not give all that serves them, and why; their proofs say what they give."""


def found(row: str) -> Any:
    """What the namespaces give for a name of the table, or for an attribute below it."""
    name, _, attribute = row.partition(":")
    root, _, path = name.partition(".")
    top = namespaces.v1() if root == "tf" else namespaces.tensorflow_estimator()
    parent, _, last = path.rpartition(".")
    thing = overlay.member(overlay.module(top, parent), name, last) if path else top
    return getattr(thing, attribute) if attribute else thing


def is_as_it_says(name: str) -> None:
    if name in DIFFERENT:
        return
    where, _, attribute = SERVED[name].served_by.partition(":")
    thing, place = found(name), _module(where)
    if attribute:
        assert thing is getattr(place, attribute)
        return
    assert isinstance(thing, types.ModuleType)
    for each in _public(place) - table.load().below(name):
        ours, real = getattr(thing, each), getattr(place, each)
        modules = isinstance(ours, types.ModuleType) and isinstance(real, types.ModuleType)
        assert ours is real or modules, each
    for each in MODULES.get(where, "").split():
        assert hasattr(thing, each), each


def without_proof() -> list[str]:
    """Rows for which no proof speaks, while `is_as_it_says` holds.

    A proof speaks for all rows that the same thing serves, and for the thing's module. Those of
    `_TESTED` need none. Rows that
    other packages serve need none, if the thing has the row's name, or one of `RENAMED`, or is one
    of `MODULES`.
    """
    proved = {row.served_by for row in map(table.load().covering, proved_rows()) if row}
    proved |= {place.partition(":")[0] for place in proved}
    return [n for n, row in SERVED.items() if row.served_by not in proved and not _elsewhere(row)]


def _elsewhere(row: DeadName) -> bool:
    if f"{row.served_by}.".startswith(_NAMESPACES):
        return True
    if row.served_by.partition(".")[0] == _OURS:
        return f"{row.served_by}.".replace(":", ".").startswith(_TESTED)
    last = row.name.rpartition(".")[2]
    today = row.served_by.replace(":", ".").rpartition(".")[2]
    return today == RENAMED.get(last, last) or row.served_by in MODULES


def _module(where: str) -> Any:
    if where.startswith("tensorflow.compat."):  # to import a part would load it a second time
        return operator.attrgetter(where.partition(".")[2])(importlib.import_module("tensorflow"))
    return importlib.import_module(where)


def _public(module: types.ModuleType) -> set[str]:
    return {name for name in getattr(module, "__all__", None) or dir(module) if name[0] != "_"}
