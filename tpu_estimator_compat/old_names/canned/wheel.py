"""Loads the modules of the package tensorflow-estimator, which has TensorFlow's canned models.

They are loaded under this module's name, with this package's own Estimator, specs, modes and
configuration. `tensorflow_estimator` itself cannot be imported: it needs names that TensorFlow 2.16
dropped.

This package keeps its own versions of these modules:

- early stopping: the loop must know when each hook reads the global step;
- input functions for arrays: the original's need queues, and threads that fill them;
- `model_to_estimator`: the original takes models of Keras 2 only;
- receivers and exporters: exports must work without tensorflow-estimator.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from tpu_estimator_compat.environment import ESTIMATOR_PACKAGE
from tpu_estimator_compat.old_names.legacy import package_copy
from tpu_estimator_compat.old_names.legacy.dialect import Dialect

_ORIGINAL = "tensorflow_estimator.python.estimator"


class _Uncounted:
    def get_cell(self, *unused_labels: str) -> _Uncounted:
        return self

    def set(self, value: bool) -> None:
        """Does nothing."""


def _unexported(*unused_names: str, **unused: Any) -> Any:
    """`estimator_export` without the registry of API names, which TensorFlow dropped."""
    return lambda exported: exported


def _all_of(module: str) -> package_copy.Names:
    def names() -> Mapping[str, Any]:
        found = vars(importlib.import_module(module))
        return {name: value for name, value in found.items() if not name.startswith("__")}

    return names


def _estimator() -> Mapping[str, Any]:
    from tpu_estimator_compat import estimator, spec

    return {
        **_all_of("tpu_estimator_compat.estimator")(),
        "EstimatorV2": estimator.Estimator,
        "VocabInfo": spec.VocabInfo,
        "WarmStartSettings": spec.WarmStartSettings,
        "_canned_estimator_api_gauge": _Uncounted(),
    }


def _specs() -> Mapping[str, Any]:
    from tpu_estimator_compat import spec

    return {"EstimatorSpec": spec.EstimatorSpec, "_TPUEstimatorSpec": spec.TPUEstimatorSpec}


def _heads() -> Mapping[str, Any]:
    """Sends the features to a head's metrics on the host, with the weights of all replicas."""
    import tensorflow as tf

    def create_eval_metrics_tuple(
        update_metrics: Callable[..., Any], given: dict[str, Any]
    ) -> tuple[Callable[..., Any], list[Any]]:
        head = update_metrics.__self__  # type: ignore[attr-defined]
        weighted = head._weight_column is not None or head._loss_fn is not None
        names = ("labels", "logits", "features") if weighted else ("labels", "logits")
        sent = {name: given[name] for name in names}

        def metric_fn(*tensors: Any) -> Any:
            received = tf.nest.pack_sequence_as(sent, tensors, expand_composites=True)
            return update_metrics(**{**given, **received})

        return metric_fn, tf.nest.flatten(sent, expand_composites=True)

    return {"create_eval_metrics_tuple": create_eval_metrics_tuple}


def _check_version() -> None:
    package, _, wanted = ESTIMATOR_PACKAGE.partition("==")
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        version = ""
    if version != wanted:
        raise ImportError(
            f"Canned models and heads need {ESTIMATOR_PACKAGE}; installed: "
            f"{version or 'none'}. Install it: `pip install '{ESTIMATOR_PACKAGE}'` brings no other "
            "package.",
            name="tensorflow_estimator",
        )


_check_version()
package_copy.load_into(
    sys.modules[__name__],
    _ORIGINAL,
    Dialect.V2,
    instead={
        "estimator": _estimator,
        "estimator_lib": _estimator,
        "estimator_export": lambda: {"estimator_export": _unexported},
        "run_config": _all_of("tpu_estimator_compat.config"),
    },
    over={"model_fn": _specs, "head.base_head": _heads},
)
