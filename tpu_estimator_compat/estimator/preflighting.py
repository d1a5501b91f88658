"""The preflight of TPUEstimators: their step on a TPU that is not there."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat.arguments import as_list, check_callable, check_input_fn, check_number
from tpu_estimator_compat.modes.captured_mode import CapturedMode
from tpu_estimator_compat.preflight.findings import Finding, Kind, Severity
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.topology import BatchSizes

if TYPE_CHECKING:
    from tpu_estimator_compat.estimator.tpu_estimator import TPUEstimator
    from tpu_estimator_compat.preflight.planned import PlannedTopology
    from tpu_estimator_compat.preflight.result import Preflight

InputFn = Callable[..., Any]
_FIELDS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "predict"}


class Preflighting:
    """What can be checked before there is a TPU; a base of `TPUEstimator`."""

    def preflight(
        self,
        input_fn: InputFn,
        topology: str | Sequence[str] = "v5e:2x2",
        mode: str = ModeKeys.TRAIN,
        *,
        depth: str = "compile",
        largest_batch: bool = False,
        time_limit: float = 3600,
        progress: Callable[[str, float], None] | None = None,
    ) -> Preflight:
        """Compiles this estimator's step for TPUs that are not there.

        model_fn and input_fn are called as on that TPU, whatever `use_tpu` says; no data is read,
        no variable gets memory, nothing is written to model_dir.

        Args:
          input_fn: tells the signature of the data.
          topology: one or several of "v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1",
            "v6e:2x2" and their like; chips along x, y (and z).
          mode: a `ModeKeys` value.
          depth: "scan" reads the graph; "lower" lowers it to StableHLO, too; "compile" also calls
            the TPU's own compiler, which `pip install 'tpu_estimator_compat[preflight]'` brings.
          largest_batch: also search for the largest batch of one replica that fits. Every size that
            is tried is compiled.
          time_limit: seconds that one compilation may take.
          progress: called about once a second with what is being done, and for how many seconds.

        Returns:
          The reports; print it, or see `to_html()`.

        Raises:
          RuntimeError: it is tensorflow-tpu that is installed, which has no XLA for the CPU.
          ValueError: a topology, mode or depth that does not exist.
          TypeError: an argument of another type.
        """
        from tpu_estimator_compat.preflight.check import Options, check
        from tpu_estimator_compat.preflight.report import Depth
        from tpu_estimator_compat.preflight.result import Preflight

        check_input_fn(input_fn)
        check_number(time_limit, "time_limit", least=0)
        if progress is not None:
            check_callable(progress, "progress", "It is given a text and a number of seconds.")
        wanted = [topology] if isinstance(topology, str) else as_list(topology, "topology", "str")
        if not wanted:
            raise ValueError('topology must name one at least, such as "v5e:2x2"; got none.')
        if mode not in _FIELDS:
            raise ValueError(f"mode must be one of {list(_FIELDS)}, got {mode!r}.")
        names = {d.name.lower(): d for d in Depth}
        if depth not in names:
            raise ValueError(f"depth must be one of {list(names)}, got {depth!r}.")
        options = Options(names[depth], largest_batch, time_limit, progress or (lambda *_: None))
        subject = _Mode(self, input_fn, mode)  # type: ignore[arg-type]
        return Preflight(check(subject, wanted, options))


class _Mode:
    """One mode of an estimator, on topologies that are not there: a `preflight.Subject`."""

    def __init__(self, estimator: TPUEstimator, input_fn: InputFn, mode: str):
        self.mode = mode
        self._estimator = estimator
        self._input_fn = input_fn
        self._tpu_config = estimator._tpu_config
        self.cores_per_replica: int = self._tpu_config.num_cores_per_replica or 1
        self.remarks = []
        if not estimator._on_tpu(mode):
            self.remarks.append(
                "This estimator would run elsewhere (use_tpu=False or eval_on_tpu=False); it was "
                "checked as if it ran on TPU."
            )

    def replicas(self, devices: int) -> int:
        if self._tpu_config.num_shards == 1 and self.cores_per_replica == 1:
            return 1
        return devices // self.cores_per_replica

    def batch_size(self, where: PlannedTopology, share: int | None) -> int | None:
        if not where.num_replicas:
            raise ValueError(
                f"TPUConfig.num_cores_per_replica is {self.cores_per_replica}, more than the "
                "topology has devices. Name a larger topology, or lower it."
            )
        sizes = self._sizes(where, share)
        sizes.check(self.mode, where, self._tpu_config._replace(num_shards=None))
        return sizes.for_model_fn(self.mode, where, self._tpu_config)

    def objections(self, where: PlannedTopology) -> list[Finding]:
        shards, replicas = self._tpu_config.num_shards, where.num_replicas
        if shards is None or shards == replicas:
            return []
        message = f"TPUConfig.num_shards is {shards}, but this topology has {replicas} replicas."
        advice = f"set num_shards={replicas}, or leave it None"
        return [Finding(Severity.FAILS, Kind.CONFIGURATION, message, advice)]

    def element_spec(self, where: PlannedTopology, share: int | None) -> Any:
        return self._placed(where, share)._feed(self._input_fn, self.mode, where).element_spec

    def capture(self, where: PlannedTopology, element_spec: Any, share: int | None) -> CapturedMode:
        return self._placed(where, share)._capture(
            self.mode, where, element_spec, check_shapes=False
        )

    def _sizes(self, where: PlannedTopology, share: int | None) -> BatchSizes:
        sizes = self._estimator._batch_sizes
        if share is None:
            return sizes
        return dataclasses.replace(sizes, **{_FIELDS[self.mode]: share * where.num_replicas})

    def _placed(self, where: PlannedTopology, share: int | None) -> TPUEstimator:
        """The estimator as it would be on that TPU."""
        estimator = copy.copy(self._estimator)
        estimator._use_tpu = estimator._eval_on_tpu = True
        estimator._batch_sizes = self._sizes(where, share)
        return estimator
