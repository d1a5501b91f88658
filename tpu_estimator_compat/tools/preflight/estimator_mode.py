"""Implements `TPUEstimator.preflight`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpu_estimator_compat.config.arguments import (
    as_list,
    check_callable,
    check_input_fn,
    check_number,
)
from tpu_estimator_compat.estimator.rules import InputFn
from tpu_estimator_compat.estimator.tpu_rules import TPURules
from tpu_estimator_compat.spec.mode_keys import check_mode
from tpu_estimator_compat.tools.preflight.check import Options, check
from tpu_estimator_compat.tools.preflight.planned_mode import PlannedMode
from tpu_estimator_compat.tools.preflight.report import Depth
from tpu_estimator_compat.tools.preflight.result import Preflight

__all__ = ["Preflight", "preflight"]


def preflight(
    rules: TPURules,
    input_fn: InputFn,
    topology: str | Sequence[str],
    mode: str,
    depth: str,
    largest_batch: bool,
    time_limit: float,
    memory_share: float,
    progress: Callable[[str, float], None] | None,
) -> Preflight:
    """Checks a mode of an estimator with these rules; arguments as in `TPUEstimator.preflight`."""
    _check_arguments(input_fn, time_limit, progress, mode)
    told = progress or (lambda *_: None)
    options = Options(_depth(depth), largest_batch, time_limit, told, memory_share)
    planned = PlannedMode(rules, input_fn, mode)
    return Preflight(check(planned, _topologies(topology), options))


def _check_arguments(input_fn: Any, time_limit: Any, progress: Any, mode: Any) -> None:
    check_input_fn(input_fn)
    check_number(time_limit, "time_limit", least=0)
    if progress is not None:
        check_callable(progress, "progress", "It is given a text and a number of seconds.")
    check_mode(mode)


def _topologies(given: str | Sequence[str]) -> Sequence[str]:
    wanted = [given] if isinstance(given, str) else as_list(given, "topology", "str")
    if not wanted:
        raise ValueError('topology must name one at least, such as "v5e:2x2"; got none.')
    return wanted


def _depth(name: str) -> Depth:
    names = {d.name.lower(): d for d in Depth}
    if name not in names:
        raise ValueError(f"depth must be one of {list(names)}, got {name!r}.")
    return names[name]
