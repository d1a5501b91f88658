"""`TPUEstimator.preflight`: compiles its step for TPUs and GPUs that are not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tpu_estimator_compat.estimator.rules import InputFn
from tpu_estimator_compat.spec import ModeKeys

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.preflight.estimator_mode import Preflight


class Preflighting:
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
        from tpu_estimator_compat.tools.preflight.estimator_mode import preflight

        options = depth, largest_batch, time_limit, memory_share, progress
        return preflight(self._mode_rules, input_fn, topology, mode, *options)  # type: ignore[attr-defined]
