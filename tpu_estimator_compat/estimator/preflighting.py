"""The preflight of TPUEstimators: their step on TPUs and GPUs that are not there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat.config.arguments import (
    as_list,
    check_callable,
    check_input_fn,
    check_number,
)
from tpu_estimator_compat.config.iterations import parse_iterations_per_loop
from tpu_estimator_compat.engine.inputs.modes import InputMode
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.estimator import preparation
from tpu_estimator_compat.estimator.rules import InputFn
from tpu_estimator_compat.estimator.tpu_rules import TPURules
from tpu_estimator_compat.spec import ModeKeys

if TYPE_CHECKING:
    from tpu_estimator_compat.engine.jax.lowering.findings import Finding
    from tpu_estimator_compat.tools.preflight.planned import PlannedTopology
    from tpu_estimator_compat.tools.preflight.report import Depth
    from tpu_estimator_compat.tools.preflight.result import Preflight

_MODES = [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT]


class Preflighting:
    """Checks of a step before there is a TPU or GPU; a base of `TPUEstimator`."""

    def preflight(
        self,
        input_fn: InputFn,
        topology: str | Sequence[str] = "v5e:2x2",
        mode: str = ModeKeys.TRAIN,
        *,
        depth: str = "compile",
        largest_batch: bool = False,
        time_limit: float = 3600,
        memory_share: float = 0.75,
        progress: Callable[[str, float], None] | None = None,
    ) -> Preflight:
        """Compiles this estimator's step for TPUs and NVIDIA GPUs that are not there.

        What is compiled is what `RunConfig(runtime="jax")` runs there: the steps of one dispatch in
        a loop, with the input of all of them, and variables updated in place.

        model_fn and input_fn are called as on that TPU, whatever `use_tpu` says; no data is read,
        no variable gets memory, nothing is written to model_dir.

        Args:
          input_fn: tells the signature of the data.
          topology: one or several of "v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1",
            "v6e:2x2" and their like: chips along x, y (and z); or GPUs, such as "h100:8",
            "a100-80:4" or "t4:1".
          mode: a `ModeKeys` value.
          depth: "scan" reads the graph; "lower" lowers it to StableHLO, too; "compile" also calls
            the devices' own compiler; the error that says that it is missing has the line of pip.
          largest_batch: also search, by compiling, for the largest batch of one replica that fits.
          time_limit: seconds that one compilation may take.
          memory_share: the share of a GPU's memory that JAX takes, above 0 and at most 1; what
            XLA_PYTHON_CLIENT_MEM_FRACTION says there. A step fits with room below 85 % of it.
          progress: called about once a second with what is being done, and for how many seconds.

        Returns:
          The reports; print it, or see `to_html()`.

        Raises:
          RuntimeError: it is tensorflow-tpu that is installed, which has no XLA for the CPU.
          ValueError: a topology, mode or depth that does not exist.
          TypeError: an argument of another type.
        """
        from tpu_estimator_compat.tools.preflight.check import Options, check
        from tpu_estimator_compat.tools.preflight.result import Preflight

        _check_preflight(input_fn, time_limit, progress, mode)
        told = progress or (lambda *_: None)
        options = Options(_depth(depth), largest_batch, time_limit, told, memory_share)
        subject = _Mode(self._mode_rules, input_fn, mode)  # type: ignore[attr-defined]
        return Preflight(check(subject, _topologies(topology), options))


class _Mode:
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
        loop = parse_iterations_per_loop(self._tpu_config.iterations_per_loop)
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
        from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity

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
        """The rules, with a batch size for so many examples of a replica, and the input there."""
        sizes = dict(self._rules.batch_sizes)
        if share is not None:
            sizes[self.mode] = share * topology.num_replicas
        tpu_config = self._tpu_config._replace(num_shards=None)  # see objections()
        rules = dataclasses.replace(self._rules, batch_sizes=sizes, tpu_config=tpu_config)
        return rules, rules.input_mode(self.mode, topology)


def _check_preflight(input_fn: Any, time_limit: Any, progress: Any, mode: Any) -> None:
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
    from tpu_estimator_compat.tools.preflight.report import Depth

    names = {d.name.lower(): d for d in Depth}
    if name not in names:
        raise ValueError(f"depth must be one of {list(names)}, got {name!r}.")
    return names[name]
