"""Loads the modules of the package tensorflow-estimator, which has TensorFlow's canned models.

They are loaded under this module's name, with this package's own Estimator, specs, modes and
configuration. `tensorflow_estimator` itself cannot be imported: it needs names that TensorFlow 2.16
dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from tpu_estimator_compat.engine.packages import package_copy, tensorflow_estimator
from tpu_estimator_compat.estimator import original
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


package_copy.load_into(
    sys.modules[__name__],
    tensorflow_estimator.ORIGINAL,
    of_copies(Dialect.V2),
    instead=original.INSTEAD,
    over={**tensorflow_estimator.OVER, "head.base_head": _heads},
)
