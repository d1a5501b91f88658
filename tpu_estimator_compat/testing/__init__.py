"""Unit tests of a model_fn on the CPU: steps of it, checks that find bugs, several replicas.

`run` makes steps of a model_fn on plain arrays, and `batches` shows what an input_fn feeds to each
replica. The functions `check_...` raise AssertionError where a model_fn has a bug that is common in
legacy code. `plugin` is what pytest loads: the mark `replicas` and the fixtures. Importing this
module imports no TensorFlow. Begin with `running.py`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpu_estimator_compat.testing.checks.batch_independent import check_batch_independent
    from tpu_estimator_compat.testing.checks.deterministic import check_deterministic
    from tpu_estimator_compat.testing.checks.exports import check_exports
    from tpu_estimator_compat.testing.checks.fits_tpu import check_fits_tpu
    from tpu_estimator_compat.testing.checks.learns import check_learns
    from tpu_estimator_compat.testing.checks.modes_agree import check_modes_agree
    from tpu_estimator_compat.testing.checks.replicas_agree import check_replicas_agree
    from tpu_estimator_compat.testing.checks.resumes import check_resumes
    from tpu_estimator_compat.testing.checks.same_as_original import check_same_as_original
    from tpu_estimator_compat.testing.devices import with_replicas
    from tpu_estimator_compat.testing.dry_running import dry_run
    from tpu_estimator_compat.testing.feeding import Batch, batches
    from tpu_estimator_compat.testing.results import Result
    from tpu_estimator_compat.testing.running import run

__all__ = [
    "Batch",
    "Result",
    "batches",
    "check_batch_independent",
    "check_deterministic",
    "check_exports",
    "check_fits_tpu",
    "check_learns",
    "check_modes_agree",
    "check_replicas_agree",
    "check_resumes",
    "check_same_as_original",
    "dry_run",
    "run",
    "with_replicas",
]

_HOMES = {
    "Batch": "feeding",
    "Result": "results",
    "batches": "feeding",
    "dry_run": "dry_running",
    "run": "running",
    "with_replicas": "devices",
    **{name: f"checks.{name[6:]}" for name in __all__ if name.startswith("check_")},
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
