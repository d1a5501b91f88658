"""Modules of tensorflow-estimator for which an estimator is this package's `Estimator`.

Exporters, receivers, early stopping, `add_metrics` and `train_and_evaluate` are the original's, and
so are the canned models. This package has its own

- deletion of old exports, which must not follow links;
- input functions for arrays: the original's need queues, and threads that fill them;
- `model_to_estimator`: the original takes models of Keras 2 only.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from tpu_estimator_compat import config, spec
from tpu_estimator_compat.engine.capture.user_functions import check_model_fn
from tpu_estimator_compat.engine.checkpoint.state import check_available, global_step_in
from tpu_estimator_compat.engine.packages import package_copy, tensorflow_estimator
from tpu_estimator_compat.estimator.estimator import Estimator, with_model_dir


def _names() -> dict[str, Any]:
    return {
        **vars(tensorflow_estimator.module("estimator")),
        "Estimator": Estimator,
        "EstimatorV2": Estimator,
        "EstimatorSpec": spec.EstimatorSpec,
        "ModeKeys": spec.ModeKeys,
        "RunConfig": config.RunConfig,
        "VocabInfo": spec.VocabInfo,
        "WarmStartSettings": spec.WarmStartSettings,
        "_check_checkpoint_available": check_available,
        "_get_default_warm_start_settings": spec.default_warm_start_settings,
        "_load_global_step_from_checkpoint_dir": global_step_in,
        "_verify_model_fn_args": check_model_fn,
        "maybe_overwrite_model_dir_and_session_config": with_model_dir,
    }


INSTEAD = {**tensorflow_estimator.INSTEAD, "estimator": _names, "estimator_lib": _names}
module = package_copy.load_into(
    sys.modules[__name__],
    tensorflow_estimator.ORIGINAL,
    tensorflow_estimator.import_,
    INSTEAD.get,
    tensorflow_estimator.OVER,
)
"""Imports a module of the package, such as `exporter`."""


def checked(function: Any, check: Callable[[dict[str, Any]], None]) -> Any:
    """A function of the original, with a check of its arguments by their names before it.

    The original takes many wrong types in silence, and fails with an error that names no argument.
    """

    @functools.wraps(function)
    def with_check(*arguments: Any, **named: Any) -> Any:
        try:
            given = inspect.getcallargs(function, *arguments, **named)
        except TypeError:
            return function(*arguments, **named)  # which says it in Python's words
        check(given)
        return function(*arguments, **named)

    return with_check
