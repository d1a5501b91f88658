"""The package tensorflow-estimator, loaded under this module's name, with this package's classes.

`tensorflow_estimator` itself cannot be imported: it needs names that TensorFlow 2.16 dropped. Its
loops need only one of them, a module that asks whether a strategy has a coordinator.
"""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from tpu_estimator_compat import config, spec
from tpu_estimator_compat.engine.packages import package_copy
from tpu_estimator_compat.environment import ESTIMATOR_PACKAGE

ORIGINAL = "tensorflow_estimator.python.estimator"


def should_run_distribute_coordinator(config: Any) -> bool:
    """False: `RunConfig` refuses the strategies for which the original asks this.

    TensorFlow 2.16 dropped it, and its module `tensorflow.python.distribute.estimator_training`.
    """
    return False


def _check_version() -> None:
    package, _, wanted = ESTIMATOR_PACKAGE.partition("==")
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        version = ""
    if version != wanted:
        raise ImportError(
            f"Canned models, evaluations, exports and sessions need {ESTIMATOR_PACKAGE}; "
            f"installed: {version or 'none'}. Install it: `pip install '{ESTIMATOR_PACKAGE}'` "
            "brings no other package.",
            name="tensorflow_estimator",
        )


def _unexported(*unused_names: str, **unused: Any) -> Any:
    """`estimator_export` without the registry of API names, which TensorFlow dropped."""
    return lambda exported: exported


INSTEAD: Mapping[str, package_copy.Names] = {
    "estimator_export": lambda: {"estimator_export": _unexported},
}
OVER: Mapping[str, package_copy.Over] = {
    "model_fn": lambda: {
        "EstimatorSpec": spec.EstimatorSpec,
        "_TPUEstimatorSpec": spec.TPUEstimatorSpec,
    },
    "run_config": lambda: {
        "RunConfig": config.RunConfig,
        "TaskType": config.TaskType,
        "_USE_DEFAULT": config.run_config._USE_DEFAULT,
    },
}


def import_(name: str, globals: Any, locals: Any, fromlist: Sequence[str], level: int = 0) -> Any:
    if name == "tensorflow.python.distribute" and "estimator_training" in fromlist:
        return types.SimpleNamespace(estimator_training=sys.modules[__name__])
    return builtins.__import__(name, globals, locals, fromlist, level)


_check_version()
module = package_copy.load_into(sys.modules[__name__], ORIGINAL, import_, INSTEAD.get, OVER)
"""Imports a module of the package, such as `training`."""
