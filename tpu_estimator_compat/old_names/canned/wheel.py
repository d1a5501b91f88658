"""All modules of the package tensorflow-estimator, with this package's Estimator and specs.

Canned models, heads and what else needs names that TensorFlow dropped are loaded here, under this
module's name. All others are those of `estimator.original`, which `train_and_evaluate`, exporters
and early stopping run: what a script changes in them has its effect.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tpu_estimator_compat.engine.packages import package_copy, tensorflow_estimator
from tpu_estimator_compat.estimator import (  # the first three change modules of the original
    early_stopping,  # noqa: F401
    exporters,  # noqa: F401
    original,
    schedule,  # noqa: F401
)
from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.imports import of_copies


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


_OF_OLD_NAMES = ("api", "canned", "estimator_lib", "head", "keras_lib", "tools", "tpu")
"""Modules and packages that need names which TensorFlow dropped."""


def _instead(name: str) -> package_copy.Names | None:
    is_shared = name.partition(".")[0] not in _OF_OLD_NAMES
    return functools.partial(original.module, name) if is_shared else None


package_copy.load_into(
    sys.modules[__name__],
    tensorflow_estimator.ORIGINAL,
    of_copies(Dialect.V2),
    _instead,
    {"head.base_head": _heads},
)
