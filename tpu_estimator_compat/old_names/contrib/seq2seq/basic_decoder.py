"""A decoder that runs a cell per step, and a helper for the next inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf
from keras import Layer as Keras3Layer
from tensorflow.python.ops.rnn_cell_impl import assert_like_rnncell
from tf_keras.api._v1.keras.layers import Layer

from tpu_estimator_compat.old_names.contrib.seq2seq.decoding import Decoder
from tpu_estimator_compat.old_names.contrib.seq2seq.helpers import Helper


class BasicDecoderOutput(NamedTuple):
    """The outputs of a step: the cell's or the output layer's, and the sample."""

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """Runs a cell, an optional output layer, and a helper that samples."""

    def __init__(
        self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None
    ) -> None:
        assert_like_rnncell("cell", cell)
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        if output_layer is not None and not isinstance(output_layer, (Layer, Keras3Layer)):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        return BasicDecoderOutput(
            layer_output_size(self._output_layer, self._cell.output_size),
            self._helper.sample_ids_shape,
        )

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        dtype = tf.nest.flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(
            tf.nest.map_structure(lambda _: dtype, self.output_size.rnn_output),
            self._helper.sample_ids_dtype,
        )

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        finished, inputs = self._helper.initialize()
        return finished, inputs, self._initial_state

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        with tf.name_scope(name, "BasicDecoderStep", (time, inputs)):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample_ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )
        return BasicDecoderOutput(outputs, sample_ids), state, inputs, finished


def layer_output_size(layer: Any, cell_output_size: Any) -> Any:
    """Shapes of the layer's outputs for a cell's output, without the batch."""
    if layer is None:
        return cell_output_size

    def of_layer(size: Any) -> tf.TensorShape:
        given = tf.TensorShape([None]).concatenate(size)
        if isinstance(layer, Keras3Layer):
            return tf.TensorShape(layer.compute_output_shape(tuple(given.as_list())))[1:]
        return tf.TensorShape(layer.compute_output_shape(given))[1:]

    return tf.nest.map_structure(of_layer, cell_output_size)
