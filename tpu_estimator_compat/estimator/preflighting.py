"""`TPUEstimator.preflight`: compiles the step for TPUs and GPUs that this machine lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tpu_estimator_compat.engine.modes.rules import InputFn
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
        """Compiles this estimator's step for TPUs and NVIDIA GPUs that this machine lacks.

        It compiles the program that `RunConfig(runtime="jax")` runs there: a loop of the steps of
        one dispatch, with the input of all those steps, and variables updated in place.

        model_fn and input_fn are called as on that TPU, whatever `use_tpu` says; no data is read,
        no variable is allocated, nothing is written to model_dir.

        Args:
          input_fn: gives the signature of the data.
          topology: one or several of "v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1",
            "v6e:2x2" and the like: chips along x, y (and z); or GPUs, such as "h100:8", "a100-80:4"
            or "t4:1".
          mode: a `ModeKeys` value.
          depth: "scan" reads the graph; "lower" also lowers it to StableHLO; "compile" also calls
            the device's own compiler. If that compiler is missing, the error has the pip line to
            install it.
          largest_batch: whether to search, by compiling, for the largest batch of one replica that
            fits.
          time_limit: seconds that one compilation may take.
          memory_share: the share of a GPU's memory that JAX allocates, above 0 and at most 1;
            there, XLA_PYTHON_CLIENT_MEM_FRACTION sets it. A step below 85 % of the share "fits with
            room".
          progress: called about once a second with the current activity and its seconds so far.

        Returns:
          The reports; print them, or see `to_html()`.

        Raises:
          RuntimeError: tensorflow-tpu is installed, which has no XLA for the CPU.
          ValueError: a topology, mode or depth that does not exist.
          TypeError: an argument of another type.
        """
        from tpu_estimator_compat.tools.preflight.estimator_mode import preflight

        options = depth, largest_batch, time_limit, memory_share, progress
        return preflight(self._mode_rules, input_fn, topology, mode, *options)  # type: ignore[attr-defined]
