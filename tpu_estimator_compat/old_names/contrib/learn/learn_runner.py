"""`tf.contrib.learn.learn_runner`: makes an experiment and runs one of its schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpu_estimator_compat.config import RunConfig, TaskType
from tpu_estimator_compat.old_names.contrib.hparams import HParams
from tpu_estimator_compat.old_names.contrib.learn.experiment import Experiment


def run(
    experiment_fn: Callable[..., Experiment],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: RunConfig | None = None,
    hparams: HParams | None = None,
) -> Any:
    """Makes an experiment, from `run_config` and `hparams` or from `output_dir`, and runs it.

    `schedule` is the name of a method of `Experiment`. In a cluster, None means `train` for workers
    and `run_std_server` for parameter servers; else `train_and_evaluate`. Returns the method's
    result.
    """
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`")
    if not callable(experiment_fn):
        raise TypeError(f'Experiment builder "{experiment_fn}" is not callable.')
    if run_config is not None:
        if not run_config.model_dir:
            raise ValueError("Must specify a model directory `model_dir` in `run_config`.")
        experiment = experiment_fn(run_config, hparams)
    elif not output_dir:
        raise ValueError("Must set value for `output_dir` or `run_config`")
    elif hparams is not None:
        raise ValueError("Must set `hparams` as None for `experiment_fn` with `output_dir`.")
    else:
        experiment = experiment_fn(output_dir=output_dir)
    if not isinstance(experiment, Experiment):
        raise TypeError(
            "Experiment builder did not return an Experiment instance, got "
            f"{type(experiment)} instead."
        )
    schedule = schedule or _default_schedule(experiment.estimator.config)
    method = getattr(experiment, schedule, None)
    if not callable(method):
        methods = [name for name in vars(Experiment) if name[0] != "_"]
        raise ValueError(f"Schedule references non-existent task {schedule}; known: {methods}")
    return method()


def _default_schedule(config: RunConfig) -> str:
    schedules = {TaskType.WORKER: "train", TaskType.PS: "run_std_server"}
    several = bool(config.cluster_spec)
    return (
        schedules.get(config.task_type, "train_and_evaluate") if several else "train_and_evaluate"
    )


__all__ = ["run"]
