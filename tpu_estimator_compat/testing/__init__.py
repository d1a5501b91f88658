"""Unit tests of a model_fn on the CPU: one step of it, checks that find bugs, several replicas.

`run` makes steps of a model_fn on plain arrays, and `batches` shows what an input_fn feeds to each
replica. The functions `check_...` raise AssertionError where a model_fn has a bug that is common in
legacy code. `plugin` is what pytest loads: the mark `replicas` and the fixtures. Importing this
module imports no TensorFlow. Begin with `running.py`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpu_estimator_compat.testing.processes import with_replicas
    from tpu_estimator_compat.testing.results import Result
    from tpu_estimator_compat.testing.running import run

__all__ = ["Result", "run", "with_replicas"]

_HOMES = {"Result": "results", "run": "running", "with_replicas": "processes"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
