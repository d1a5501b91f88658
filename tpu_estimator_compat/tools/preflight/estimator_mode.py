"""One mode of a TPUEstimator as the subject of a preflight."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from tpu_estimator_compat.config.arguments import (
    as_list,
    check_callable,
    check_input_fn,
    check_number,
)
from tpu_estimator_compat.engine.inputs.modes import InputMode
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.estimator import preparation
from tpu_estimator_compat.estimator.rules import InputFn
from tpu_estimator_compat.estimator.tpu_rules import TPURules
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.preflight.check import Options, check
from tpu_estimator_compat.tools.preflight.planned import PlannedTopology
from tpu_estimator_compat.tools.preflight.report import Depth
from tpu_estimator_compat.tools.preflight.result import Preflight

__all__ = ["Preflight", "preflight"]

_MODES = [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT]


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
    """Implements `TPUEstimator.preflight` by the estimator's rules."""
    _check_arguments(input_fn, time_limit, progress, mode)
    told = progress or (lambda *_: None)
    options = Options(_depth(depth), largest_batch, time_limit, told, memory_share)
    subject = EstimatorMode(rules, input_fn, mode)
    return Preflight(check(subject, _topologies(topology), options))


class EstimatorMode:
    """One mode of an estimator, on topologies that are not there: a `preflight.Subject`."""

    def __init__(self, rules: TPURules, input_fn: InputFn, mode: str):
        self.mode = mode
        self._rules = rules
        self._input_fn = input_fn
        self._tpu_config = rules.tpu_config
        self.cores_per_replica: int = self._tpu_config.num_cores_per_replica or 1
        self.loop = self._steps_of_loop()
        self.remarks = []
        if not rules.on_tpu(mode):
            self.remarks.append(
                "This estimator would run elsewhere (use_tpu=False or eval_on_tpu=False); it was "
                "checked as if it ran on TPU."
            )

    def _steps_of_loop(self) -> int | None:
        if self.mode != ModeKeys.TRAIN:
            return None
        loop = self._tpu_config.loop_length
        return loop.value if loop.unit == "count" else None

    def replicas(self, devices: int) -> int:
        if self._tpu_config.num_shards == 1 and self.cores_per_replica == 1:
            return 1
        return devices // self.cores_per_replica

    def batch_size(self, topology: PlannedTopology, share: int | None) -> int | None:
        if not topology.num_replicas:
            raise ValueError(
                f"TPUConfig.num_cores_per_replica is {self.cores_per_replica}, more than the "
                "topology has devices. Name a larger topology, or lower it."
            )
        _, input_mode = self._placed(topology, share)
        input_mode.check()
        return input_mode.model_batch_size

    def objections(self, topology: PlannedTopology) -> list[Finding]:
        shards, replicas = self._tpu_config.num_shards, topology.num_replicas
        if shards is None or shards == replicas:
            return []
        message = f"TPUConfig.num_shards is {shards}, but this topology has {replicas} replicas."
        advice = f"set num_shards={replicas}, or leave it None"
        return [Finding(Severity.FAILS, Kind.CONFIGURATION, message, advice)]

    def element_spec(self, topology: PlannedTopology, share: int | None) -> Any:
        rules, input_mode = self._placed(topology, share)
        return preparation.element_spec(rules, self._input_fn, input_mode)

    def capture(
        self, topology: PlannedTopology, element_spec: Any, share: int | None
    ) -> CapturedMode:
        rules, input_mode = self._placed(topology, share)
        return preparation.capture(rules, input_mode, element_spec, check_shapes=False)

    def _placed(self, topology: PlannedTopology, share: int | None) -> tuple[TPURules, InputMode]:
        """The rules with the batch size for `share` examples a replica, and the input mode."""
        sizes = dict(self._rules.batch_sizes)
        if share is not None:
            sizes[self.mode] = share * topology.num_replicas
        tpu_config = self._tpu_config._replace(num_shards=None)  # see objections()
        rules = dataclasses.replace(self._rules, batch_sizes=sizes, tpu_config=tpu_config)
        return rules, rules.input_mode(self.mode, topology)


def _check_arguments(input_fn: Any, time_limit: Any, progress: Any, mode: Any) -> None:
    check_input_fn(input_fn)
    check_number(time_limit, "time_limit", least=0)
    if progress is not None:
        check_callable(progress, "progress", "It is given a text and a number of seconds.")
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {_MODES}, got {mode!r}.")


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
