"""Surroundings of the parity runs: model families, through the original or through this package.

A scenario is a run of one estimator, by the fields of `Run` in the settings of its side. TF2
behaviour is left on, on both sides: with it the original uses resource variables, whose order of
reads and writes is defined. TF 1.15 has no wheel for the Pythons in use, so it is not a side.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import shutil
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from support import families
from support.simulated_tpu import devices
from tensorflow.python.tpu import tpu_function

LOSS_TENSOR = "total_loss:0"


@dataclasses.dataclass
class Run:
    """What one estimator is asked to do.

    Args:
        family: Its model.
        start: Directory whose latest checkpoint is copied into the estimator's first.
        train_steps: Steps to train; 0 trains none.
        record_losses: Whether a hook fetches the loss of every step.
        evaluate_steps: Batches to evaluate; None evaluates nothing, 0 all the data.
        evaluate_every_checkpoint: Evaluates each checkpoint kept, not only the latest.
        predict: Whether to predict.
        num_shards: How many replicas; None for as many as there are logical CPUs.
    """

    family: str
    start: str | None = None
    train_steps: int = 0
    record_losses: bool = True
    save_checkpoints_steps: int = 20
    keep_checkpoint_max: int = 5
    iterations_per_loop: int = 1
    evaluate_steps: int | None = None
    evaluate_every_checkpoint: bool = False
    predict: bool = False
    use_tpu: bool = False
    num_shards: int | None = None


class LossRecorder(tf.train.SessionRunHook):
    """Fetches the loss by its tensor's name in every step, as user hooks do."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def before_run(self, run_context: Any) -> Any:
        return tf.train.SessionRunArgs({"loss": LOSS_TENSOR})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results["loss"]))


@contextlib.contextmanager
def scenarios(
    side: str, settings: dict[str, Any], out: pathlib.Path
) -> Iterator[Callable[[str], Callable[..., Any]]]:
    if settings.get("cpus", 1) > 1:
        devices.split_cpu(settings["cpus"])
    sys.modules["legacy_namespace"] = families.legacy_namespace(side)
    yield lambda name: functools.partial(do, Run(**settings["runs"][name]))


def do(run: Run, model_dir: str, record: Any) -> dict[str, Any]:
    family, found = families.load(run.family), {}
    if run.start:
        copy_checkpoint(run.start, model_dir)
    est = make_estimator(watched(family, record), family, run, model_dir)
    if run.train_steps:
        recorder = LossRecorder()
        hooks = [recorder] if run.record_losses else []
        est.train(family.train_input_fn, steps=run.train_steps, hooks=hooks)
        found["losses"] = recorder.losses
    if run.evaluate_steps is not None:
        steps = run.evaluate_steps or None
        found["evaluate"] = est.evaluate(family.eval_input_fn, steps=steps)
        if run.evaluate_every_checkpoint:
            state = tf.train.get_checkpoint_state(model_dir)
            found["evaluate_by_checkpoint"] = {
                os.path.basename(path): est.evaluate(
                    family.eval_input_fn, steps=steps, checkpoint_path=path
                )
                for path in state.all_model_checkpoint_paths
            }
    if run.predict:
        examples = list(est.predict(family.predict_input_fn))
        found["predictions"] = {key: np.stack([e[key] for e in examples]) for key in examples[0]}
    return found


def copy_checkpoint(source: str, target: str) -> None:
    """Copies the latest checkpoint with a state file that names it relative to its directory."""
    path = tf.train.latest_checkpoint(source)
    if path is None:
        raise FileNotFoundError(f"No checkpoint in {source}.")
    os.makedirs(target, exist_ok=True)
    folder, stem = os.path.split(path)
    for name in os.listdir(folder):
        if name.startswith(stem + "."):
            shutil.copy(os.path.join(folder, name), target)
    with open(os.path.join(target, "checkpoint"), "w") as state:
        state.write(f'model_checkpoint_path: "{stem}"\nall_model_checkpoint_paths: "{stem}"\n')


def watched(family: types.ModuleType, record: Any) -> Any:
    """The family's model_fn, its calls noted: mode, shards seen, batch sizes told and given."""

    def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
        shards = tpu_function.get_tpu_context().number_of_shards
        given = tf.nest.flatten(features)[0].shape.as_list()[0]
        record({"mode": mode, "shards": shards, "told": params["batch_size"], "given": given})
        return family.model_fn(features, labels, mode, params)

    return model_fn


def make_estimator(model_fn: Any, family: types.ModuleType, run: Run, model_dir: str) -> Any:
    tpu = sys.modules["legacy_namespace"].tpu
    config = tpu.RunConfig(
        model_dir=model_dir,
        tf_random_seed=5,
        save_checkpoints_steps=run.save_checkpoints_steps,
        keep_checkpoint_max=run.keep_checkpoint_max,
        log_step_count_steps=20,
        session_config=tf.ConfigProto(allow_soft_placement=True),
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=run.iterations_per_loop, num_shards=run.num_shards
        ),
    )
    return tpu.TPUEstimator(
        model_fn=model_fn,
        config=config,
        use_tpu=run.use_tpu,
        train_batch_size=family.TRAIN_BATCH,
        eval_batch_size=family.EVAL_BATCH,
        predict_batch_size=family.PREDICT_BATCH,
        params=dict(family.PARAMS),
    )
