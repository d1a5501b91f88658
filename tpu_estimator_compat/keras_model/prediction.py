"""Predictions of a model for batches of Keras' data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture.capture import plain_element
from tpu_estimator_compat.engine.graph.sources import with_lines
from tpu_estimator_compat.engine.inputs.calling import with_original_keys
from tpu_estimator_compat.engine.modes.model_modes import ModelModes
from tpu_estimator_compat.engine.modes.preparation import split_element
from tpu_estimator_compat.keras_model import elements
from tpu_estimator_compat.spec import ModeKeys

Build = Callable[[str, Any], None]


class Prediction:
    """Predicts with the PREDICT mode of a model; `build` captures the mode for a spec."""

    def __init__(self, modes: ModelModes, build: Build):
        self._modes = modes
        self._build = build
        self._function: Any = None

    def __call__(self, batches: Sequence[Any]) -> Any:
        """Predictions for several elements, concatenated; captures the mode on first use."""
        features = [split_element(plain_element(batch))[0] for batch in batches]
        if self._function is None:
            self._make_function(features[0])
        mode = self._modes[ModeKeys.PREDICT]
        with with_lines(mode.captured.graph):
            outputs = [self._of_element(each) for each in features]
        flat = [tf.concat(parts, axis=0) for parts in zip(*outputs, strict=True)]
        return mode.packed(flat)

    def _make_function(self, features: Any) -> None:
        modes = self._modes
        spec = tf.nest.map_structure(elements.spec_of, features)
        if not modes.topology.compiles:
            spec = elements.any_batch(spec)
        elif modes.replicas_per_element > 1:
            spec = elements.shares_of(spec, modes.replicas_per_element)
        self._build(ModeKeys.PREDICT, spec)
        self._function = modes[ModeKeys.PREDICT].ready_session.runner.element_function()

    def _of_element(self, element: Any) -> list[tf.Tensor]:
        """The predictions for one element; pads a short element if shapes must be static.

        Keras splits the last batch unevenly among the replicas; some may get no rows.
        """
        modes = self._modes
        if not modes.topology.compiles:
            return self._function(element)
        strategy = modes.store.strategy
        specs = tf.nest.flatten(modes[ModeKeys.PREDICT].element_spec)
        shares = [spec.shape[0] * modes.replicas_per_element for spec in specs]
        parts = [strategy.experimental_local_results(t) for t in tf.nest.flatten(element)]
        if all(p.shape[0] == share for ps, share in zip(parts, shares, strict=True) for p in ps):
            return self._function(element)
        with tf.device("/cpu:0"):
            whole = [tf.concat(of_all, axis=0) for of_all in parts]
            [rows] = {int(tf.shape(t)[0]) for t in whole}
            shared = zip(whole, shares, strict=True)
            full = [elements.filled(t, share, strategy) for t, share in shared]
        element = tf.nest.pack_sequence_as(element, full)
        return [output[:rows] for output in self._function(element)]

    def of_batch(self, features: Any) -> Any:
        """Predictions for one batch: each replica computes all; the first one's are returned."""
        replicas = self._modes.store.strategy.num_replicas_in_sync
        return tf.nest.map_structure(lambda t: t[: tf.shape(t)[0] // replicas], self([features]))


def features_spec(modes: ModelModes) -> Any:
    """The features of a batch of any size, as a structure of `tf.TypeSpec`s."""
    features, _ = split_element(modes.first().element_spec)
    return with_original_keys(elements.any_batch(features))
