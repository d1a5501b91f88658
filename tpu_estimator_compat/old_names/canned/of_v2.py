"""Names of `tf.estimator` that differ between TensorFlow 2 and 1, loaded on first access."""

from __future__ import annotations

import importlib
from typing import Any

_MODELS = {
    "baseline": ("BaselineClassifier", "BaselineEstimator", "BaselineRegressor"),
    "dnn": ("DNNClassifier", "DNNEstimator", "DNNRegressor"),
    "dnn_linear_combined": (
        "DNNLinearCombinedClassifier",
        "DNNLinearCombinedEstimator",
        "DNNLinearCombinedRegressor",
    ),
    "linear": ("LinearClassifier", "LinearEstimator", "LinearRegressor"),
}
_PLACES = {name: (module, f"{name}V2") for module, names in _MODELS.items() for name in names} | {
    name: ("parsing_utils", f"{name}_v2")
    for name in ("classifier_parse_example_spec", "regressor_parse_example_spec")
}

NAMES = frozenset(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inner = _PLACES[name]
    return getattr(importlib.import_module(f"{__package__}.wheel.canned.{module}"), inner)


def __dir__() -> list[str]:
    return sorted(_PLACES)
