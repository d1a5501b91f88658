"""Cells of `tf.contrib.rnn` with gates of their own kind, most of them simpler than an LSTM's."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
import tf_keras
from tf_keras.api._v1.keras import initializers as v1_initializers
from tf_keras.src.layers.rnn.legacy_cells import LayerRNNCell, RNNCell

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import known_depth, linear


class _GateCell(RNNCell):
    """A cell whose state is one tensor, as deep as its output.

    Args:
      num_units: depth of the state.
      initializer: of kernels; None for the scope's.
      forget_bias: is added to gates that keep.
      reuse: whether variables are those that are there.
    """

    def __init__(self, num_units: int, initializer: Any, forget_bias: float, reuse: bool | None):
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias

    @property
    def state_size(self) -> int:
        """`num_units`."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """`num_units`."""
        return self._num_units

    def _kept(self, gate: tf.Tensor, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        keep = tf.sigmoid(gate + self._forget_bias)
        return keep * old + (1.0 - keep) * new


class UGRNNCell(_GateCell):
    """A cell with one gate, for update (https://arxiv.org/abs/1611.09913).

    Args:
      num_units: depth of the state.
      initializer: of kernels; None for the scope's.
      forget_bias: is added to the gate, which keeps.
      activation: of new values.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
    ):
        super().__init__(num_units, initializer, forget_bias, reuse)
        self._activation = activation

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """One step.

        Args:
          inputs: [batch, depth].
          state: [batch, num_units].

        Returns:
          The new state, twice.

        Raises:
          ValueError: the depth of the input is not known.
        """
        known_depth(inputs.shape)
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            gates = linear([tf.concat([inputs, state], 1)], 2 * self._num_units)
        gate, new = tf.split(gates, 2, axis=1)
        state = self._kept(gate, state, self._activation(new))
        return state, state


class IntersectionRNNCell(_GateCell):
    """A cell with one gate in time and one in depth (https://arxiv.org/abs/1611.09913).

    Args:
      num_units: depth of the state.
      num_in_proj: if given, inputs of another depth are projected to `num_units`.
      initializer: of kernels; None for the scope's.
      forget_bias: is added to the gates, which keep.
      y_activation: of new values in depth.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Any = tf.nn.relu,
        reuse: bool | None = None,
    ):
        super().__init__(num_units, initializer, forget_bias, reuse)
        self._num_in_proj = num_in_proj
        self._activation = y_activation

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """One step.

        Args:
          inputs: [batch, depth].
          state: [batch, num_units].

        Returns:
          The output [batch, num_units], and the new state.

        Raises:
          ValueError: the depth of the input is not known, or is another without `num_in_proj`.
        """
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            inputs = self._projected(inputs)
            gates = linear([tf.concat([inputs, state], 1)], 4 * self._num_units)
        in_time, new, in_depth, output = tf.split(gates, 4, axis=1)
        output = self._kept(in_depth, inputs, self._activation(output))
        return output, self._kept(in_time, state, tf.tanh(new))

    def _projected(self, inputs: tf.Tensor) -> tf.Tensor:
        if known_depth(inputs.shape) == self._num_units:
            return inputs
        if not self._num_in_proj:
            raise ValueError(
                "Must have input size == output size for Intersection RNN. To fix, num_in_proj "
                "should be set to num_units at cell init."
            )
        with tf.variable_scope("in_projection"):
            return linear([inputs], self._num_units)


class SRUCell(LayerRNNCell):
    """A simple recurrent unit (https://arxiv.org/abs/1709.02755): its gates see inputs alone.

    Args:
      num_units: depth of the state.
      activation: of the output; None for tanh.
      reuse: whether variables are those that are there.
      name: of the layer.
      **kwargs: of a layer, such as `dtype`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self.input_spec = tf_keras.layers.InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = activation or tf.tanh

    @property
    def state_size(self) -> int:
        """`num_units`."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """`num_units`."""
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Raises:
          ValueError: the depth of the input is not known.
        """
        self._kernel = self.add_weight("kernel", [known_depth(input_shape), 4 * self._num_units])
        zeros = tf.zeros_initializer()
        self._bias = self.add_weight("bias", [2 * self._num_units], initializer=zeros)
        self.built = True

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """One step.

        Args:
          inputs: [batch, depth].
          state: [batch, num_units].

        Returns:
          The output [batch, num_units], and the new state.
        """
        new, forget, reset, skipped = tf.split(tf.matmul(inputs, self._kernel), 4, axis=1)
        gates = tf.nn.bias_add(tf.concat([forget, reset], 1), self._bias)
        forget, reset = tf.split(tf.sigmoid(gates), 2, axis=1)
        state = forget * state + (1.0 - forget) * new
        return reset * self._activation(state) + (1.0 - reset) * skipped, state


class _UnitsCell(LayerRNNCell):
    """A cell whose arguments are those of a layer of Keras.

    Args:
      units: depth of the state.
      activation: of new values; a function, or its name.
      kernel_initializer: of kernels; an initializer, or its name.
      bias_initializer: of biases; an initializer, or its name.
      name: of the layer.
      dtype: of the variables.
      **kwargs: of a layer.
    """

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "ones",
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.input_spec = tf_keras.layers.InputSpec(ndim=2)
        self.units = units
        self.activation = tf_keras.activations.get(activation)
        self.kernel_initializer = _initializer(kernel_initializer)
        self.bias_initializer = _initializer(bias_initializer)

    @property
    def state_size(self) -> int:
        """`units`."""
        return self.units

    @property
    def output_size(self) -> int:
        """`units`."""
        return self.units

    def _kernel(self, name: str, shape: list[int]) -> Any:
        return self.add_weight(name, shape, initializer=self.kernel_initializer)

    def _bias(self, width: int) -> Any:
        return self.add_weight("bias", [width], initializer=self.bias_initializer)


def _initializer(given: Any) -> Any:
    # Those of TensorFlow 1 draw anew for each variable; those of Keras 2 repeat themselves.
    if isinstance(given, str) and hasattr(v1_initializers, given):
        return getattr(v1_initializers, given)()
    return tf_keras.initializers.get(given)


class MinimalRNNCell(_UnitsCell):
    """A cell that mixes its projected input with its state (https://arxiv.org/abs/1806.05394).

    Args:
      units: depth of the state.
      activation: of the projected input; a function, or its name.
      kernel_initializer: of the kernel; an initializer, or its name.
      bias_initializer: of the gate's bias; an initializer, or its name.
      name: of the layer.
      dtype: of the variables.
      **kwargs: of a layer.
    """

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Raises:
          ValueError: the depth of the input is not known.
        """
        rows = known_depth(input_shape) + 2 * self.units
        self.kernel = self._kernel("kernel", [rows, self.units])
        self.bias = self._bias(self.units)
        self.built = True

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """One step.

        Args:
          inputs: [batch, depth].
          state: [batch, units].

        Returns:
          The new state, twice.
        """
        depths = [known_depth(inputs.shape), 2 * self.units]
        of_inputs, of_gate = tf.split(self.kernel, depths, axis=0)
        new = self.activation(tf.matmul(inputs, of_inputs))
        gate = tf.nn.bias_add(tf.matmul(tf.concat([new, state], 1), of_gate), self.bias)
        keep = tf.sigmoid(gate)
        state = keep * state + (1 - keep) * new
        return state, state


class CFNCell(_UnitsCell):
    """A cell without chaos (https://openreview.net/forum?id=S1dIzvclg).

    Its input gate is what the paper's leaves: with a bias of ones it starts small.

    Args:
      units: depth of the state.
      activation: of state and input; a function, or its name.
      kernel_initializer: of kernels; an initializer, or its name.
      bias_initializer: of the gates' bias; an initializer, or its name.
      name: of the layer.
      dtype: of the variables.
      **kwargs: of a layer.
    """

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Raises:
          ValueError: the depth of the input is not known.
        """
        self.kernel = self._kernel("kernel", [known_depth(input_shape), 3 * self.units])
        self.recurrent_kernel = self._kernel("recurrent_kernel", [self.units, 2 * self.units])
        self.bias = self._bias(2 * self.units)
        self.built = True

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """One step.

        Args:
          inputs: [batch, depth].
          state: [batch, units].

        Returns:
          The new state, twice.
        """
        of_gates, of_inputs = tf.split(self.kernel, [2 * self.units, self.units], axis=1)
        gates = tf.matmul(state, self.recurrent_kernel) + tf.matmul(inputs, of_gates)
        keep, shut = tf.split(tf.sigmoid(tf.nn.bias_add(gates, self.bias)), 2, axis=1)
        new = self.activation(tf.matmul(inputs, of_inputs))
        state = keep * self.activation(state) + (1 - shut) * new
        return state, state


__all__ = [
    "CFNCell",
    "IntersectionRNNCell",
    "MinimalRNNCell",
    "SRUCell",
    "UGRNNCell",
]
