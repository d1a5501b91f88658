"""`check_fits_tpu`: preflight's findings as a failed test."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

from tpu_estimator_compat.config import TPURunConfig
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.testing.subject import SEED, ModelFn, Subject


def check_fits_tpu(
    model_fn: ModelFn,
    features: Any,
    labels: Any = None,
    params: Any = None,
    *,
    topology: str | Sequence[str] = "v5e:2x2",
    depth: str = "scan",
    mode: str = ModeKeys.TRAIN,
) -> None:
    """Fails where `preflight` says that a step does not run on a TPU or GPU that is not there.

    Example:
      testing.check_fits_tpu(model_fn, images, digits, topology="v5e:2x2")

    Args:
      model_fn, features, labels, params, mode: as for `testing.run`. The examples are the global
        batch.
      topology, depth: as for `TPUEstimator.preflight`. "scan" needs no JAX; "compile" needs the
        extra `preflight`.

    Raises:
      AssertionError: the step certainly fails, or does not fit, or the topology's replicas cannot
        share the batch; the report, with lines.
      ValueError: a topology, mode or depth that does not exist.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    subject = Subject(model_fn, features, labels, params, True, SEED)
    with tempfile.TemporaryDirectory(prefix="testing_") as folder:
        estimator = subject.on(TPURunConfig(model_dir=folder))
        found = estimator.preflight(subject.input_fn(), topology, mode, depth=depth)
    if found.exit_code == 1:
        raise AssertionError(
            f"check_fits_tpu found that the step does not run on {topology}:\n{found}"
        )
