"""Saves a Keras model on captured variables: weights files, exports, a summary table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.modes.model_modes import ModelModes
from tpu_estimator_compat.keras_model import variable_table
from tpu_estimator_compat.keras_model.adopted import AdoptedVariable
from tpu_estimator_compat.keras_model.prediction import features_spec

Export = Callable[[Any, Any, Callable[[str], str]], None]
"""Writes a SavedModel: takes its path, the spec of the features, and a function that writes a
checkpoint to a directory.
"""


class SavedVariables(keras.Model):
    """A model whose variables are those of a captured graph, by their TF1 names."""

    modes: ModelModes
    _export: Export

    def save_own_variables(self, store: Any) -> None:
        """Stores every variable under its TF1 name, with `:` for `/`; Keras calls this."""
        for path, variable in self._variables_by_path().items():
            store[_key(path)] = variable

    def load_own_variables(self, store: Any) -> None:
        """Loads the variables; ValueError if `store` lacks a trainable variable."""
        variables = self._variables_by_path()
        keys = set(store.keys())
        missing = [path for path in variables if _key(path) not in keys]
        if lost := [path for path in missing if variables[path].trainable]:
            raise ValueError(
                f"The weights file has no values for {lost}. It has "
                f"{sorted(key.replace(':', '/') for key in keys)}."
            )
        if missing:
            logging.warning("Not in the weights file, and left as they are: %s", missing)
        for path, variable in variables.items():
            if path not in missing:
                variable.assign(store[_key(path)])

    def summary(
        self,
        line_length: int | None = None,
        positions: Any = None,
        print_fn: Callable[[str], Any] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: Any = None,
    ) -> None:
        """Prints the variables by scope, with shapes and counts, in place of layers.

        Args:
          line_length: least width in characters; None for the width of the text.
          positions: ignored.
          print_fn: takes the whole text; None prints it.
          expand_nested: ignored: every scope is shown.
          show_trainable: whether to show which variables are trainable.
          layer_range: ignored.
        """
        del positions, expand_nested, layer_range
        variables = [v for v in self.variables if isinstance(v, AdoptedVariable)]
        text = variable_table.as_text(
            self.name, variables, width=line_length, show_trainable=show_trainable
        )
        (print_fn or print)(text)

    def save_weights(self, *args: Any, **kwargs: Any) -> None:
        """Saves as `keras.Model.save_weights` does; ValueError for a model without variables."""
        self._variables_by_path()  # without variables, Keras would write an empty file
        super().save_weights(*args, **kwargs)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Raises NotImplementedError; the message names alternatives."""
        del args, kwargs
        raise NotImplementedError(_NOT_SAVED.format("save()"))

    def export(self, filepath: Any, format: str = "tf_saved_model", **kwargs: Any) -> None:
        """Writes a SavedModel for serving to `filepath`, with the current values.

        Graphs and signatures are those of `Estimator.export_saved_model`; the receiver takes the
        features themselves, in batches of any size.

        Args:
          filepath: the directory of the SavedModel; an existing SavedModel there is replaced.
          format: "tf_saved_model".
          **kwargs: only `verbose`, which is ignored.

        Raises:
          ValueError: another format, a model without variables, or features that are neither a
            tensor nor a dict of tensors.
          TypeError: another argument.
          FileExistsError: `filepath` exists and is not a SavedModel.
        """
        if format != "tf_saved_model":
            raise ValueError(f"export() writes format='tf_saved_model', given: {format!r}.")
        if more := sorted(set(kwargs) - {"verbose"}):
            raise TypeError(
                f"export() got {more}. The signature is that of model_fn's features; for another, "
                "call estimator.export_saved_model(directory, serving_input_receiver_fn)."
            )
        self._variables_by_path()
        self.modes.follow_checkpoint()
        self._export(filepath, features_spec(self.modes), self.modes.save_to)
        logging.info("Exported a SavedModel to %s.", filepath)

    def get_config(self) -> dict[str, Any]:
        """Raises NotImplementedError; the message names alternatives."""
        raise NotImplementedError(_NOT_SAVED.format("get_config(), which cloning and saving need,"))

    def _variables_by_path(self) -> dict[str, AdoptedVariable]:
        found = {v.path: v for v in self.variables if isinstance(v, AdoptedVariable)}
        if not found:
            raise ValueError(
                "This model has no variables yet. Make it with keras_model(input_fn), or let it "
                "see data first, by predict or fit."
            )
        return found


_NOT_SAVED = (
    "{} does not work for this model: it is made of a model_fn, which is code and has no "
    "configuration. For serving, export(path) writes a SavedModel. To go on later, "
    "save_weights('name.weights.h5') keeps the variables; and fit() ends with a checkpoint in "
    "model_dir."
)


def _key(path: str) -> str:
    """A variable's key in a weights file, in which `/` makes groups; TF1 names have no `:`."""
    return path.replace("/", ":")
