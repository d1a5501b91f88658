"""`TPUConfig`: the loop, the input pipeline and the model's partition."""

import re
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.config.task import read_tf_config

_STEPS_OR_TIME = re.compile(r"(?P<value>[1-9]\d*)(?P<suffix>[smh]?)")
_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600}
_CORES_PER_REPLICA = (1, 2, 4, 8, 16, 32, 64, 128)


class IterationsPerLoopCounter(NamedTuple):
    """Length of the inner loop: `value` steps (`unit='count'`) or seconds (`unit='seconds'`)."""

    value: int
    unit: str


def check_positive_integer(value: Any, name: str) -> None:
    if not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be int, got {type(value)}: {value!r}")
    if value <= 0:
        raise ValueError(f"{name} must be positive, got {value}")


def parse_iterations_per_loop(iterations_per_loop: int | str) -> IterationsPerLoopCounter:
    """The length of a loop in steps (`1000`, `"1000"`) or as a time (`"30s"`); else ValueError."""
    match = _STEPS_OR_TIME.fullmatch(str(iterations_per_loop))
    if match is None:
        raise ValueError(
            "Invalid TPUConfig `iterations_per_loop` value. Value must be positive integer value "
            "or time-based value `<N><s|m|h>` where <N> is any positive integer and `s`, `m`, `h` "
            "are unit of time in seconds, minutes, hours respectively. Examples of valid values: "
            f"`3600s`, `60m`, `1h`. Got {iterations_per_loop!r}."
        )
    value, suffix = int(match["value"]), match["suffix"]
    if not suffix:
        return IterationsPerLoopCounter(value, "count")
    return IterationsPerLoopCounter(value * _SECONDS_PER_UNIT[suffix], "seconds")


class InputPipelineConfig:
    """The ways of calling `input_fn` and of spreading its batches over replicas.

    Plain ints, not an enum: scripts compare them with `is` and pass bare numbers.

    Example:
      >>> config = TPUConfig(per_host_input_for_training=InputPipelineConfig.PER_HOST_V2)
      >>> config.per_host_input_for_training
      3
    """

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


_INPUT_MODES = {value: name for name, value in vars(InputPipelineConfig).items() if name.isupper()}


class _TPUConfigFields(NamedTuple):
    iterations_per_loop: Any
    num_shards: Any
    num_cores_per_replica: Any
    per_host_input_for_training: Any
    tpu_job_name: Any
    initial_infeed_sleep_secs: Any
    input_partition_dims: Any
    eval_training_input_configuration: Any
    experimental_host_call_every_n_steps: Any
    experimental_allow_per_host_v2_parallel_get_next: Any
    experimental_feed_hook: Any


class TPUConfig(_TPUConfigFields):
    """TPU related configuration required by `TPUEstimator`; the original's named tuple.

    Args:
      iterations_per_loop: train steps (int) run on the device before the host gets control, or a
        time as `"<N>s"`, `"<N>m"`, `"<N>h"`.
      num_shards: number of replicas of the TPU; deprecated, but checked. Without a TPU, the largest
        number of this machine's devices to use as replicas; a warning tells if there are fewer.
      num_cores_per_replica: cores that share one replica (1, 2, 4, ... 128); None for one core.
      per_host_input_for_training: an `InputPipelineConfig` value; True is `PER_HOST_V1`, False is
        `PER_SHARD_V1`.
      tpu_job_name: name of the TPU job; defaults to TF_CONFIG's `service.tpu_worker_job_name`.
      initial_infeed_sleep_secs: seconds before the first batch is fed.
      input_partition_dims: one or two (features, labels) nested lists of partition counts per
        dimension.
      eval_training_input_configuration: `PER_HOST_V1` (follow `per_host_input_for_training`) or
        `SLICED` (call `input_fn` on host 0 and slice its batches over the replicas).
      experimental_host_call_every_n_steps: steps between two host calls within a loop.
      experimental_allow_per_host_v2_parallel_get_next: whether datasets may give elements out of
        order, in any input mode.
      experimental_feed_hook: ignored; the class of the original's infeed/outfeed session hook.

    Raises:
      TypeError: `num_shards`, `initial_infeed_sleep_secs` or `experimental_host_call_every_n_steps`
        is not an int, or `input_partition_dims` is not a list.
      ValueError: a value is out of its range, or two of them contradict each other.

    Example:
      >>> TPUConfig(iterations_per_loop=100, num_shards=8).num_shards
      8
    """

    def __new__(
        cls,
        iterations_per_loop: int | str = 2,
        num_shards: int | None = None,
        num_cores_per_replica: int | None = None,
        per_host_input_for_training: bool | int = True,
        tpu_job_name: str | None = None,
        initial_infeed_sleep_secs: int | None = None,
        input_partition_dims: Any = None,
        eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
        experimental_host_call_every_n_steps: int = 1,
        experimental_allow_per_host_v2_parallel_get_next: bool = False,
        experimental_feed_hook: type | None = None,
    ) -> "TPUConfig":
        parse_iterations_per_loop(iterations_per_loop)
        if num_shards is not None:
            check_positive_integer(num_shards, "TPUConfig num_shards")
        if input_partition_dims is not None:
            _check_partition(
                input_partition_dims, per_host_input_for_training, num_cores_per_replica
            )
        _check_cores(num_cores_per_replica)
        _check_eval_input(eval_training_input_configuration)
        check_positive_integer(
            experimental_host_call_every_n_steps, "TPUConfig experimental_host_call_every_n_steps"
        )
        if initial_infeed_sleep_secs:
            check_positive_integer(initial_infeed_sleep_secs, "TPUConfig initial_infeed_sleep_secs")
        return super().__new__(
            cls,
            iterations_per_loop,
            num_shards,
            num_cores_per_replica,
            _input_mode(per_host_input_for_training),
            tpu_job_name or _tpu_job_name_from_tf_config(),
            initial_infeed_sleep_secs,
            input_partition_dims,
            eval_training_input_configuration,
            experimental_host_call_every_n_steps,
            experimental_allow_per_host_v2_parallel_get_next,
            experimental_feed_hook,
        )

    @property
    def loop_length(self) -> IterationsPerLoopCounter:
        """`iterations_per_loop` as a number of steps or of seconds."""
        return parse_iterations_per_loop(self.iterations_per_loop)


def _check_partition(dims: Any, input_mode: bool | int, cores_per_replica: int | None) -> None:
    if not hasattr(dims, "__len__"):
        raise TypeError(
            f"input_partition_dims must be a list/tuple with one or two elements. Got {dims!r}."
        )
    if len(dims) not in (1, 2):
        raise ValueError(
            "input_partition_dims must be a list/tuple with one or two elements."
            f" Got {len(dims)}: {dims!r}. Give one for features and, if there are labels, one more."
        )
    if input_mode != InputPipelineConfig.PER_HOST_V2:
        raise ValueError(
            "input_partition_dims is only supported in PER_HOST_V2 mode."
            f" Got per_host_input_for_training={input_mode!r}; set it to"
            " InputPipelineConfig.PER_HOST_V2."
        )
    if cores_per_replica is None:
        raise ValueError(
            "input_partition_dims requires setting num_cores_per_replica."
            " Set it to the number of partitions."
        )


def _check_cores(num_cores_per_replica: int | None) -> None:
    if num_cores_per_replica is not None and num_cores_per_replica not in _CORES_PER_REPLICA:
        allowed = ", ".join(map(str, _CORES_PER_REPLICA))
        raise ValueError(f"num_cores_per_replica must be {allowed}; got {num_cores_per_replica}")


def _check_eval_input(mode: int) -> None:
    if mode not in (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.SLICED):
        raise ValueError(
            f"eval_training_input_configuration must be PER_HOST_V1 or SLICED; got {mode}"
        )


def _input_mode(per_host_input_for_training: bool | int) -> int:
    """The `InputPipelineConfig` value of an argument that was a bool in early versions."""
    if per_host_input_for_training is False:
        return InputPipelineConfig.PER_SHARD_V1
    if per_host_input_for_training is True:
        return InputPipelineConfig.PER_HOST_V1
    # As in the original, None is allowed, too.
    if per_host_input_for_training is not None and per_host_input_for_training not in _INPUT_MODES:
        raise ValueError(
            "per_host_input_for_training must be True, False or a value of InputPipelineConfig:"
            f" {', '.join(f'{name} ({value})' for value, name in _INPUT_MODES.items())}."
            f" Got {per_host_input_for_training!r}."
        )
    return per_host_input_for_training


def _tpu_job_name_from_tf_config() -> str | None:
    service = read_tf_config().get("service") or {}
    name: str | None = service.get("tpu_worker_job_name")
    if name:
        tf.compat.v1.logging.info("Load TPU job name from TF_CONFIG: %s", name)
    return name
