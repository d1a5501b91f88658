"""Estimators derived from other estimators: with more metrics, or features in the predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.estimator.original.extenders import add_metrics
from tpu_estimator_compat.spec import EstimatorSpec
from tpu_estimator_compat.tf_internals import PredictOutput

__all__ = ["add_metrics", "forward_features"]


def forward_features(
    estimator: Estimator,
    keys: str | Iterable[str] | None = None,
    sparse_default_values: Mapping[str, Any] | None = None,
) -> Estimator:
    """An estimator that copies features, such as example ids, to the predictions.

    Args:
      estimator: the base estimator, which predicts a dict; it does not change.
      keys: keys of the features; None for all.
      sparse_default_values: key of a sparse feature to the value of its missing entries.

    Raises:
      TypeError: `keys` are not strings.
      ValueError: raised by model_fn: features or predictions are not a dict, a feature is missing,
        a prediction has the same key, or a sparse feature has no default value.
    """
    if isinstance(keys, str):
        keys = [keys]
    wanted = None if keys is None else list(keys)
    if wanted is not None and not all(isinstance(key, str) for key in wanted):
        raise TypeError(f"keys should be strings. Given: {wanted}")

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None:
            return spec
        forwarded = _forwarded(features, spec.predictions, wanted, sparse_default_values or {})
        outputs = {
            name: _with_features(output, forwarded)
            for name, output in (spec.export_outputs or {}).items()
        }
        return spec._replace(
            predictions={**spec.predictions, **forwarded},
            export_outputs=outputs if spec.export_outputs is not None else None,
        )

    return Estimator(
        model_fn,
        estimator.model_dir,
        estimator.config,
        warm_start_from=estimator._warm_start_settings,
    )


def _forwarded(
    features: Any, predictions: Any, keys: list[str] | None, fill: Mapping[str, Any]
) -> dict[str, tf.Tensor]:
    if not isinstance(features, dict):
        raise ValueError(f"Features should be a dict. Given type: {type(features)}")
    if not isinstance(predictions, dict):
        raise ValueError(
            "Predictions should be a dict to be able to forward features. "
            f"Given type: {type(predictions)}"
        )
    found = {}
    for key in features if keys is None else keys:
        if key not in features:
            raise ValueError(
                f'keys should be exist in features. Key "{key}" is not in features dict. '
                f"features dict has following keys: {list(features)}."
            )
        if key in predictions:
            raise ValueError(
                f"Cannot forward feature key ({key}). Since it does exist in predictions. "
                f"Existing prediction keys: {list(predictions)}."
            )
        found[key] = _dense(key, features[key], fill)
    return found


def _dense(key: str, feature: Any, fill: Mapping[str, Any]) -> tf.Tensor:
    feature = tf.compat.v1.convert_to_tensor_or_sparse_tensor(feature)
    if not isinstance(feature, tf.SparseTensor):
        return feature
    if key not in fill:
        raise ValueError(
            f"Feature {key!r} is a SparseTensor, which predictions cannot be. Give the value for "
            f"its gaps in sparse_default_values, such as {{{key!r}: 0}}."
        )
    return tf.sparse.to_dense(feature, default_value=fill[key])


def _with_features(output: Any, features: Mapping[str, tf.Tensor]) -> Any:
    if not isinstance(output, PredictOutput):
        return output
    return PredictOutput({**output.outputs, **features})
