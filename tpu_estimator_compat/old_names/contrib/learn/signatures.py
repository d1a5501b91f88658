"""The signatures of an estimator's features and labels, the same in every call."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

Signature = Any
"""None, a `tf.TypeSpec`, or a dict of them. No batch size."""


def of(tensors: Any) -> Signature:
    """The signature of a tensor or of a dict of tensors."""
    if isinstance(tensors, dict):
        return {name: of(tensor) for name, tensor in tensors.items()}
    if isinstance(tensors, tf.SparseTensor):
        return tf.SparseTensorSpec(None, tensors.dtype)
    if tensors is None:
        return None
    shape = tensors.shape
    return tf.TensorSpec(shape if not shape.rank else [None, *shape[1:]], tensors.dtype)


def fits(tensors: Any, signature: Signature) -> bool:
    """Whether tensors are as a signature says; a dict may have more."""
    if isinstance(signature, dict):
        names = signature.keys()
        given = isinstance(tensors, dict) and names <= tensors.keys()
        return given and all(fits(tensors[name], signature[name]) for name in names)
    if tensors is None or signature is None or isinstance(tensors, dict):
        return tensors is signature
    return signature.is_compatible_with(of(tensors))


def check(kind: str, tensors: Any, signature: Signature) -> None:
    """Refuses tensors that do not fit.

    Args:
      kind: the kind of the tensors.
      tensors: a tensor, or a dict of them.
      signature: the shapes and dtypes that they must have.

    Raises:
      ValueError: they are not.
    """
    if not fits(tensors, signature):
        raise ValueError(
            f"{kind} are incompatible with given information. Given {kind.lower()}: {tensors}, "
            f"required signatures: {signature}."
        )


def placeholders(signature: Signature) -> Any:
    """Placeholders of a signature, for labels that nobody gives."""
    if signature is None:
        return None
    if isinstance(signature, dict):
        return {name: placeholders(each) for name, each in signature.items()}
    if isinstance(signature, tf.SparseTensorSpec):
        return tf.compat.v1.sparse_placeholder(signature.dtype)
    return tf.compat.v1.placeholder(signature.dtype, signature.shape)
