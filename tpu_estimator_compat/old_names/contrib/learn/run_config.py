"""`RunConfig` and `ModeKeys` of `tf.contrib.learn`, for Estimators of `tf.estimator`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.config import RunConfig as _RunConfig
from tpu_estimator_compat.config import TaskType

_USE_DEFAULT = 0
_LOCAL = ("", "local")


class RunConfig(_RunConfig):
    """The configuration of an `Estimator`, with the arguments of `tf.contrib.learn`.

    `num_cores` (threads; 0 for all), `log_device_placement` and `gpu_memory_fraction` go to
    `tf_config`, which an Estimator ignores: it reads `session_config`. `save_checkpoints_secs=0`
    means 600, unless steps are given. All other arguments are those of `tf.estimator.RunConfig`; a
    master on another machine raises NotImplementedError.
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: float | None = _USE_DEFAULT,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: str | None = None,
        session_config: tf.ConfigProto | None = None,
    ) -> None:
        for name, address in (("master", master), ("evaluation_master", evaluation_master)):
            if address not in (None, *_LOCAL):
                raise NotImplementedError(
                    f"{name}={address!r}: an Estimator has no session on another machine here. "
                    "Start the script on every machine, with TF_CONFIG. For a TPU, take "
                    "tf.contrib.tpu.RunConfig."
                )
        intervals: dict[str, Any] = {}
        if save_checkpoints_secs != _USE_DEFAULT:
            intervals["save_checkpoints_secs"] = save_checkpoints_secs
        if save_checkpoints_steps is not None or intervals:
            intervals["save_checkpoints_steps"] = save_checkpoints_steps
        super().__init__(
            model_dir=model_dir,
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            protocol=protocol,
            **intervals,
        )
        if master is not None:
            self._master = master
        self._evaluation_master = evaluation_master
        self._tf_config = tf.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )

    @property
    def tf_config(self) -> tf.ConfigProto:
        """The session configuration made from the arguments."""
        return self._tf_config


class ModeKeys:
    """Names of the modes of a model_fn; their values are those of `tf.estimator.ModeKeys`."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")


__all__ = ["ModeKeys", "RunConfig", "TaskType"]
