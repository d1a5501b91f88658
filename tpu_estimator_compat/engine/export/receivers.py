"""Receivers: the inputs of an exported graph, and model_fn's features made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.engine.capture.capture import placeholders

# The default names of inputs in signatures: servers' clients rely on them.
from tpu_estimator_compat.tf_internals import (
    SINGLE_FEATURE_DEFAULT_NAME,
    SINGLE_LABEL_DEFAULT_NAME,
    SINGLE_RECEIVER_DEFAULT_NAME,
)

Tensors = Any
"""A tensor (dense, sparse or ragged), or a dict of them."""

_TENSOR_TYPES = (tf.Tensor, tf.SparseTensor, tf.RaggedTensor)
_DEFAULT_NAMES = {
    "feature": SINGLE_FEATURE_DEFAULT_NAME,
    "label": SINGLE_LABEL_DEFAULT_NAME,
    "receiver_tensor": SINGLE_RECEIVER_DEFAULT_NAME,
    "receiver_tensors_alternative": SINGLE_RECEIVER_DEFAULT_NAME,
}


class _ServingFields(NamedTuple):
    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Any


class ServingInputReceiver(_ServingFields):
    """The result of a `serving_input_receiver_fn` for a model_fn that takes a dict of features.

    Args:
      features: tensor, or dict of str or int to tensor, for model_fn. A bare tensor becomes
        `{"feature": tensor}`; use `TensorServingInputReceiver` to hand it over bare.
      receiver_tensors: tensor, or dict of str to tensor, that servers feed: usually placeholders.
        A bare tensor is called `input` in signatures.
      receiver_tensors_alternatives: name to other tensors that may be fed instead, such as parsed
        features; each makes further signatures, called `name:signature`. None for none.

    Raises:
      ValueError: a value is not a tensor (dense, sparse, ragged), a key has a wrong type, or the
        alternatives are not a dict.

    Example:
      >>> ServingInputReceiver({"x": x}, receiver_tensors=x).receiver_tensors.keys()
      dict_keys(['input'])
    """

    def __new__(
        cls,
        features: Tensors,
        receiver_tensors: Tensors,
        receiver_tensors_alternatives: dict[str, Tensors] | None = None,
    ) -> ServingInputReceiver:
        return super().__new__(
            cls,
            features=named_tensors(features, "feature", integer_keys=True),
            receiver_tensors=named_tensors(receiver_tensors, "receiver_tensor"),
            receiver_tensors_alternatives=_alternatives(receiver_tensors_alternatives),
        )


class TensorServingInputReceiver(_ServingFields):
    """The result of a `serving_input_receiver_fn` for a model_fn that takes one bare tensor.

    Args:
      features: the tensor for model_fn.
      receiver_tensors, receiver_tensors_alternatives: as in `ServingInputReceiver`.

    Raises:
      ValueError: as in `ServingInputReceiver`; `features` is a dict.

    Example:
      >>> TensorServingInputReceiver(x, receiver_tensors=x).features.shape
      TensorShape([2])
    """

    def __new__(
        cls,
        features: Tensors,
        receiver_tensors: Tensors,
        receiver_tensors_alternatives: dict[str, Tensors] | None = None,
    ) -> TensorServingInputReceiver:
        if features is None:
            raise ValueError("features must be defined. Got None; give a tensor.")
        _check_tensor(features, None, "feature")
        return super().__new__(
            cls,
            features=features,
            receiver_tensors=named_tensors(receiver_tensors, "receiver_tensor"),
            receiver_tensors_alternatives=_alternatives(receiver_tensors_alternatives),
        )


class UnsupervisedInputReceiver(ServingInputReceiver):
    """The result of an input receiver function for TRAIN or EVAL without labels.

    Args:
      features, receiver_tensors: as in `ServingInputReceiver`.

    Example:
      >>> UnsupervisedInputReceiver({"x": x}, receiver_tensors=x).features.keys()
      dict_keys(['x'])
    """

    def __new__(cls, features: Tensors, receiver_tensors: Tensors) -> UnsupervisedInputReceiver:
        return super().__new__(cls, features, receiver_tensors, None)  # type: ignore[return-value]


class _SupervisedFields(NamedTuple):
    features: Any
    labels: Any
    receiver_tensors: Any


class SupervisedInputReceiver(_SupervisedFields):
    """The result of an input receiver function for TRAIN or EVAL.

    Args:
      features, labels: tensor, or dict of str or int to tensor; handed to model_fn as it is.
      receiver_tensors: tensor, or dict of str to tensor, that is fed.

    Raises:
      ValueError: a value is not a tensor, or a key has a wrong type.

    Example:
      >>> SupervisedInputReceiver(x, labels=y, receiver_tensors={"x": x}).labels.shape
      TensorShape([2])
    """

    def __new__(
        cls, features: Tensors, labels: Tensors, receiver_tensors: Tensors
    ) -> SupervisedInputReceiver:
        named_tensors(features, "feature", integer_keys=True)
        named_tensors(labels, "label", integer_keys=True)
        return super().__new__(
            cls,
            features=features,
            labels=labels,
            receiver_tensors=named_tensors(receiver_tensors, "receiver_tensor"),
        )


def named_tensors(tensors: Tensors, field: str, *, integer_keys: bool = False) -> dict[Any, Any]:
    """`tensors` as a dict; a bare tensor gets the default name of its field.

    `field` is feature, label, receiver_tensor or receiver_tensors_alternative.
    """
    if tensors is None:
        raise ValueError(f"{field}s must be defined. Got None; give a tensor or a dict of tensors.")
    if not isinstance(tensors, dict):
        tensors = {_DEFAULT_NAMES[field]: tensors}
    for name, tensor in tensors.items():
        _check_key(name, field, integer_keys)
        _check_tensor(tensor, name, field)
    return tensors


def _alternatives(alternatives: Any) -> dict[str, dict[str, Any]] | None:
    if alternatives is None:
        return None
    if not isinstance(alternatives, dict):
        raise ValueError(
            f"receiver_tensors_alternatives must be a dict: {alternatives}. Give name to tensors."
        )
    field = "receiver_tensors_alternative"
    return {name: named_tensors(tensors, field) for name, tensors in alternatives.items()}


def _check_key(name: Any, field: str, integer_keys: bool) -> None:
    if isinstance(name, str) or (integer_keys and isinstance(name, int)):
        return
    wanted = "strings or ints" if integer_keys else "strings"
    raise ValueError(f"{field} keys must be {wanted}: {name}.")


def _check_tensor(tensor: Any, name: Any, field: str) -> None:
    if isinstance(tensor, _TENSOR_TYPES):
        return
    if hasattr(tensor, "tensor"):  # a wrapper such as LabeledTensor, which the original let pass
        try:
            tf.convert_to_tensor(tensor)
            return
        except TypeError:
            pass
    label = f"{field} {name}" if name else field
    raise ValueError(
        f"{label} must be a Tensor, SparseTensor, or RaggedTensor. "
        f"Got {type(tensor).__name__}: {tensor!r}"
    )


def build_raw_serving_input_receiver_fn(
    features: dict[str, tf.Tensor], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A serving_input_receiver_fn whose features are fed as they are.

    Args:
      features: name to tensor (symbolic or eager), which gives the placeholder's dtype, shape and,
        if symbolic, name.
      default_batch_size: first dimension of all placeholders; None for any.

    Returns:
      The function; each call makes placeholders in the default graph.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        fed = _placeholders(features, default_batch_size)
        return ServingInputReceiver(fed, fed)

    return serving_input_receiver_fn


def receiver_of(spec: Any) -> ServingInputReceiver | TensorServingInputReceiver:
    """A receiver whose features, of one spec or of a dict of specs, are fed as they are."""
    named = spec if isinstance(spec, dict) else {"": spec}
    if not all(isinstance(each, tf.TypeSpec) for each in named.values()):
        raise ValueError(
            f"The features are {spec}. A signature has tensors by name: export_saved_model of the "
            "estimator takes a serving_input_receiver_fn that makes such features of tensors."
        )
    with tf.name_scope("receiver"):
        features = placeholders(spec).structure
    make = ServingInputReceiver if isinstance(spec, dict) else TensorServingInputReceiver
    return make(features, features)


def build_parsing_serving_input_receiver_fn(
    feature_spec: dict[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A serving_input_receiver_fn that is fed serialized `tf.Example`s.

    Args:
      feature_spec: name to `tf.io.FixedLenFeature`, `VarLenFeature` and the like.
      default_batch_size: number of examples in a request; None for any.

    Returns:
      The function. The input, of dtype string and shape [batch], is called `examples`.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        serialized = tf.compat.v1.placeholder(
            tf.string, shape=[default_batch_size], name="input_example_tensor"
        )
        features = tf.compat.v1.io.parse_example(serialized, feature_spec)
        return ServingInputReceiver(features, {"examples": serialized})

    return serving_input_receiver_fn


def build_raw_supervised_input_receiver_fn(
    features: Tensors, labels: Tensors, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """An input receiver function for TRAIN or EVAL; features and labels are fed as they are.

    Args:
      features: tensor, or dict of str to tensor, which gives dtypes and shapes. A bare tensor is
        fed as `input`.
      labels: likewise. A bare tensor is fed as `label`.
      default_batch_size: first dimension of all placeholders; None for any.

    Returns:
      The function; each call makes placeholders in the default graph.

    Raises:
      ValueError: features and labels have a key in common.
    """
    feature_keys = set(features) if isinstance(features, dict) else {SINGLE_RECEIVER_DEFAULT_NAME}
    label_keys = set(labels) if isinstance(labels, dict) else {SINGLE_LABEL_DEFAULT_NAME}
    if overlap := feature_keys & label_keys:
        raise ValueError(
            "Features and labels must have distinct keys. "
            f"Found overlapping keys: {overlap}. Rename one of them."
        )

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        fed_features = _placeholders(features, default_batch_size)
        fed_labels = _placeholders(labels, default_batch_size)
        receiver_tensors = {
            **_under_default(fed_features, SINGLE_RECEIVER_DEFAULT_NAME),
            **_under_default(fed_labels, SINGLE_LABEL_DEFAULT_NAME),
        }
        return SupervisedInputReceiver(fed_features, fed_labels, receiver_tensors)

    return supervised_input_receiver_fn


def build_supervised_input_receiver_fn_from_input_fn(
    input_fn: Callable[..., Any], **input_fn_args: Any
) -> Callable[[], SupervisedInputReceiver]:
    """An input receiver function for TRAIN or EVAL that is fed elements like those of `input_fn`.

    Args:
      input_fn: returns a Dataset of (features, labels), or such a pair of tensors. It is called
        once, in a graph of its own.
      **input_fn_args: arguments of `input_fn`.

    Returns:
      The function; each call makes placeholders in the default graph.

    Raises:
      ValueError: input_fn returns no pair, or features and labels have a key in common.
    """
    with tf.Graph().as_default():
        element = input_fn(**input_fn_args)
        if isinstance(element, tf.data.Dataset):
            element = tf.compat.v1.data.make_initializable_iterator(element).get_next()
        if not isinstance(element, (list, tuple)) or len(element) != 2:
            raise ValueError(
                "input_fn should return (features, labels) as a len 2 tuple. "
                f"Got {type(element).__name__}: {element}"
            )
        features, labels = element
    return build_raw_supervised_input_receiver_fn(features, labels)


def _under_default(tensors: Tensors, name: str) -> dict[str, Any]:
    return tensors if isinstance(tensors, dict) else {name: tensors}


def _placeholders(tensors: Tensors, batch_size: int | None) -> Tensors:
    if isinstance(tensors, dict):
        return {name: _placeholder(tensor, batch_size) for name, tensor in tensors.items()}
    return _placeholder(tensors, batch_size)


def _placeholder(tensor: tf.Tensor, batch_size: int | None) -> tf.Tensor:
    op = getattr(tensor, "op", None)  # eager tensors have none
    return tf.compat.v1.placeholder(
        tensor.dtype,
        tf.TensorShape([batch_size]).concatenate(tensor.shape[1:]),
        name=op.name if op is not None else None,
    )
