"""Ids and weights of a table's features, as input_fn returns them, and the columns in use."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.embedding.lookup import Ids


@dataclasses.dataclass(frozen=True)
class FeatureInput:
    """Ids of one feature, their weights (None for 1), and the placeholder of the activation."""

    ids: Ids
    weights: tf.SparseTensor | None
    activation: tf.Tensor


class UsedColumns(dict[str, tuple[str, str]]):
    """Key to (scope, name) of each TPU column that a graph uses; calls `noted` for each new one."""

    def __init__(self, noted: Callable[[str, str, str], None]):
        super().__init__()
        self._noted = noted

    def __setitem__(self, key: str, scope_and_name: tuple[str, str]) -> None:
        super().__setitem__(key, scope_and_name)
        self._noted(key, *scope_and_name)


def ids_of(features: dict[str, Any], name: str) -> Ids:
    """Removes a feature's ids, a tensor of integers, from `features` and returns them."""
    if name not in features:
        raise ValueError(
            f"The features have no {name!r}, whose ids embedding_config_spec looks up. input_fn "
            f"gives {sorted(map(str, features))}."
        )
    ids = features.pop(name)
    if not isinstance(ids, (tf.Tensor, tf.SparseTensor)):
        raise TypeError(
            f"The ids of feature {name!r} must be a tensor or a SparseTensor, got {ids!r}."
        )
    if not ids.dtype.is_integer:
        raise ValueError(
            f"The ids of feature {name!r} must be integers, got {ids.dtype.name}. Strings must be "
            "made ids in input_fn: for a column with a vocabulary, call "
            "column.categorical_column._transform_feature({key: features[key]}) there."
        )
    return ids


def weights_of(
    features: dict[str, Any], weight_key: str | None, ids: Ids, name: str
) -> tf.SparseTensor | None:
    """Removes the sparse weights of a feature's ids from `features` and returns them, or None."""
    if weight_key is None:
        return None
    if weight_key not in features:
        raise ValueError(
            f"Cannot find weights {weight_key} of feature {name!r}. Please check if the weights are"
            " present in feature dict. Also note that features cannot share weights. input_fn "
            f"gives {sorted(map(str, features))}."
        )
    weights = features.pop(weight_key)
    if not isinstance(weights, tf.SparseTensor):
        raise ValueError(
            f"The weights {weight_key} of feature {name!r} are dense: {weights}. Dense weights are "
            "not supported on TPU. Please use sparse weights instead."
        )
    if not isinstance(ids, tf.SparseTensor):
        raise ValueError(
            f"Found weights {weight_key} of feature {name!r}, whose ids are dense: {ids}. Give ids "
            "with weights as a SparseTensor."
        )
    return weights
