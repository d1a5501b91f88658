"""Runs legacy TPUEstimator code, unchanged, on today's TensorFlow and Keras 3.

How it works: each call of an estimator runs model_fn in a TensorFlow 1 graph, and makes a step of
that graph. The device part of the step runs on every replica, the host part once. A keras.Model
owns the steps and the variables. Two loops run the steps: Keras' own, and TensorFlow's
MonitoredSession with its hooks.

`import tpu_estimator_compat as tpu` stands for `tf.estimator.tpu` (once `tf.contrib.tpu`), and
`tpu_estimator_compat.estimator` for `tf.estimator`; `import tpu_estimator_compat.v1 as tf` for the
whole `tf` of TensorFlow 1. Importing this package changes nothing in TensorFlow, which is imported
only when a name is used. If the installed TensorFlow cannot work, the import raises ImportError.

PYTEST_DONT_REWRITE: pytest, which loads `testing.plugin`, need not rewrite asserts here.
"""

from tpu_estimator_compat import command_path as _command_path

_command_path.leave_working_directory()  # before any import that could come from there

import importlib  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from tpu_estimator_compat import environment as _environment  # noqa: E402

if TYPE_CHECKING:
    from tpu_estimator_compat import estimator, tpu
    from tpu_estimator_compat.estimator import ModeKeys, WarmStartSettings
    from tpu_estimator_compat.old_names.legacy.notebooks.installed import install, uninstall
    from tpu_estimator_compat.tpu import (
        BatchConfig,
        CrossShardOptimizer,
        ExportSavedModelApiVersion,
        InputPipelineConfig,
        RunConfig,
        TPUConfig,
        TPUEstimator,
        TPUEstimatorSpec,
        TPUStrategy,
        export_estimator_savedmodel,
        inference_on_tpu,
        model_fn_inference_on_tpu,
    )

__version__ = "1.0.0"

_environment.occupy_standard_streams()
if not _environment.is_for_doctor():  # doctor reports check()'s errors itself
    _environment.check()  # before TensorFlow's import, which some libtpu releases abort

__all__ = [
    "BatchConfig",
    "CrossShardOptimizer",
    "ExportSavedModelApiVersion",
    "InputPipelineConfig",
    "ModeKeys",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "TPUStrategy",
    "WarmStartSettings",
    "estimator",
    "export_estimator_savedmodel",
    "inference_on_tpu",
    "install",
    "model_fn_inference_on_tpu",
    "tpu",
    "uninstall",
]

_MODULES = {"estimator", "tpu"}
_HOMES = {
    "ModeKeys": "estimator",
    "WarmStartSettings": "estimator",
    "install": "old_names.legacy.notebooks.installed",
    "load_ipython_extension": "old_names.legacy.notebooks.installed",
    "uninstall": "old_names.legacy.notebooks.installed",
    "unload_ipython_extension": "old_names.legacy.notebooks.installed",
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use: commands such as `scan` must not wait for TensorFlow."""
    if name in _MODULES:
        return _imported(name)
    if name not in __all__ and name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, "tpu")
    value = getattr(_imported(home), name)
    globals()[name] = value
    return value


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if not (said := _environment.explained(error)):
            raise
        raise ModuleNotFoundError(said, name=error.name) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
