"""Parity driver: runs one model family through the original or through this package, and records.

A script for a process of its own, under either interpreter:

    driver.py --side original|ours [--family NAME] --job JOB.json --out OUT_DIR

The job is JSON: `logical_cpus` (ours: how many the CPU is split into, each a replica when
`use_tpu` is true) and `runs`, a list of objects with the fields of `Run`. Each run makes one
estimator. OUT_DIR gets `results.json` (a record per run, by name) and for each run
`NAME.variables.npz` and `NAME.predictions.npz`.

The script knows nothing of pytest, and nothing of the package but its public names. TF2 behaviour
is left on, on both sides: with it the original uses resource variables, whose order of reads and
writes is defined. TF 1.15 has no wheel for the Pythons in use, so it is not one of the sides.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import sys
import traceback
import types
from typing import Any

# Before TensorFlow is imported: quiet, and the plain kernels on both sides.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_function

sys.path.insert(1, str(pathlib.Path(__file__).parents[1]))

from support import families

LOSS_TENSOR = "total_loss:0"


@dataclasses.dataclass
class Run:
    """What one estimator is asked to do.

    Args:
        name: Key of the record.
        model_dir: Directory of the estimator; made if it does not exist.
        family: Its model; None for the process's.
        start: Directory whose latest checkpoint is copied into model_dir first.
        train_steps: Steps to train; 0 trains none.
        record_losses: Whether a hook fetches the loss of every step.
        evaluate_steps: Batches to evaluate; None evaluates nothing, 0 all the data.
        evaluate_every_checkpoint: Evaluates each checkpoint kept, not only the latest.
        predict: Whether to predict.
        jit: Asks for XLA through session_config's global_jit_level.
        num_shards: How many replicas; None for as many as there are logical CPUs.
    """

    name: str
    model_dir: str
    family: str | None = None
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
    jit: bool = False
    num_shards: int | None = None
    train_batch_size: int | None = None
    eval_batch_size: int | None = None
    predict_batch_size: int | None = None
    params: dict[str, Any] = dataclasses.field(default_factory=dict)


class LossRecorder(tf.train.SessionRunHook):
    """Fetches the loss by its tensor's name in every step, as user hooks do."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def before_run(self, run_context: Any) -> Any:
        return tf.train.SessionRunArgs({"loss": LOSS_TENSOR})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results["loss"]))


def split_cpu(count: int) -> None:
    """Splits the CPU into logical devices, which must happen before TensorFlow starts."""
    if count > 1:
        tf.config.experimental.set_virtual_device_configuration(
            tf.config.experimental.list_physical_devices("CPU")[0],
            [tf.config.experimental.VirtualDeviceConfiguration()] * count,
        )


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


def watched(family: types.ModuleType, record: dict[str, Any]) -> Any:
    """The family's model_fn, its calls noted: mode, shards seen, batch sizes told and given."""
    record["calls"] = []

    def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
        shards = tpu_function.get_tpu_context().number_of_shards
        given = tf.nest.flatten(features)[0].shape.as_list()[0]
        call = {"mode": mode, "shards": shards, "told": params["batch_size"], "given": given}
        record["calls"].append(call)
        return family.model_fn(features, labels, mode, params)

    return model_fn


def make_estimator(namespace: types.ModuleType, model_fn: Any, family: Any, run: Run) -> Any:
    tpu = namespace.tpu
    session = tf.ConfigProto(allow_soft_placement=True)
    if run.jit:
        session.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    config = tpu.RunConfig(
        model_dir=run.model_dir,
        tf_random_seed=5,
        save_checkpoints_steps=run.save_checkpoints_steps,
        keep_checkpoint_max=run.keep_checkpoint_max,
        log_step_count_steps=20,
        session_config=session,
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=run.iterations_per_loop, num_shards=run.num_shards
        ),
    )
    return tpu.TPUEstimator(
        model_fn=model_fn,
        config=config,
        use_tpu=run.use_tpu,
        train_batch_size=run.train_batch_size or family.TRAIN_BATCH,
        eval_batch_size=run.eval_batch_size or family.EVAL_BATCH,
        predict_batch_size=run.predict_batch_size or family.PREDICT_BATCH,
        params={**family.PARAMS, **run.params},
    )


def train(est: Any, family: types.ModuleType, run: Run, record: dict[str, Any]) -> None:
    recorder = LossRecorder()
    record["losses"] = recorder.losses
    hooks = [recorder] if run.record_losses else []
    est.train(family.train_input_fn, steps=run.train_steps, hooks=hooks)


def evaluate(est: Any, family: types.ModuleType, run: Run, record: dict[str, Any]) -> None:
    steps = run.evaluate_steps or None
    record["evaluate"] = describe(est.evaluate(family.eval_input_fn, steps=steps))
    if run.evaluate_every_checkpoint:
        state = tf.train.get_checkpoint_state(run.model_dir)
        record["evaluate_by_checkpoint"] = {
            os.path.basename(path): describe(
                est.evaluate(family.eval_input_fn, steps=steps, checkpoint_path=path)
            )
            for path in state.all_model_checkpoint_paths
        }


def describe(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each value of an evaluation with the name of its type."""
    return {key: {"type": type(v).__name__, "value": v.item()} for key, v in result.items()}


def predict(est: Any, family: types.ModuleType) -> dict[str, np.ndarray]:
    """The examples of `predict`, stacked by key."""
    examples = list(est.predict(family.predict_input_fn))
    return {key: np.stack([e[key] for e in examples]) for key in examples[0]} if examples else {}


def read_variables(model_dir: str) -> dict[str, np.ndarray]:
    """Every variable of the latest checkpoint."""
    path = tf.train.latest_checkpoint(model_dir)
    if path is None:
        return {}
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def read_state(model_dir: str) -> dict[str, Any] | None:
    """The state file's paths as they are written, with model_dir's own path taken out."""
    path = os.path.join(model_dir, "checkpoint")
    if not os.path.exists(path):
        return None
    with open(path) as state:
        lines = state.read().replace(model_dir, "<model_dir>").splitlines()
    fields: dict[str, list[str]] = {}
    for line in lines:
        key, _, value = line.partition(": ")
        fields.setdefault(key, []).append(value.strip('"'))
    return {
        "model_checkpoint_path": fields.get("model_checkpoint_path"),
        "all_model_checkpoint_paths": fields.get("all_model_checkpoint_paths"),
        "timestamps": len(fields.get("all_model_checkpoint_timestamps", [])),
    }


def list_files(model_dir: str) -> list[str]:
    """Files below model_dir, with the time and host taken out of the names of event files."""
    found = {
        re.sub(r"(events\.out\.tfevents)\..*", r"\1", str(path.relative_to(model_dir)))
        for path in pathlib.Path(model_dir).rglob("*")
        if path.is_file()
    }
    return sorted(found)


def do_run(namespace: types.ModuleType, family: types.ModuleType, run: Run, out: str) -> Any:
    """One run; an error is part of the record."""
    record: dict[str, Any] = {"error": None}
    try:
        if run.start:
            copy_checkpoint(run.start, run.model_dir)
        est = make_estimator(namespace, watched(family, record), family, run)
        if run.train_steps:
            train(est, family, run, record)
        if run.evaluate_steps is not None:
            evaluate(est, family, run, record)
        if run.predict:
            np.savez(os.path.join(out, f"{run.name}.predictions.npz"), **predict(est, family))
    except Exception as error:
        record["error"] = {
            "type": type(error).__name__,
            "message": str(error),
            "traceback": traceback.format_exc(),
        }
    values = read_variables(run.model_dir)
    # An archive's entries cannot be called by the variables' names: "/" would make folders.
    keys = {name: f"v{i}" for i, name in enumerate(sorted(values))}
    np.savez(
        os.path.join(out, f"{run.name}.variables.npz"), **{keys[n]: v for n, v in values.items()}
    )
    record["variables"] = {
        name: {"key": keys[name], "shape": list(value.shape), "dtype": str(value.dtype)}
        for name, value in sorted(values.items())
    }
    record["state"] = read_state(run.model_dir)
    record["files"] = list_files(run.model_dir)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", choices=("original", "ours"), required=True)
    parser.add_argument("--family")
    parser.add_argument("--job", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    with open(args.job) as file:
        job = json.load(file)
    os.makedirs(args.out, exist_ok=True)
    split_cpu(job.get("logical_cpus", 1))
    namespace = families.legacy_namespace(args.side)
    sys.modules["legacy_namespace"] = namespace
    todo = [Run(**fields) for fields in job["runs"]]
    records = {
        run.name: do_run(namespace, families.load(run.family or args.family), run, args.out)
        for run in todo
    }
    with open(os.path.join(args.out, "results.json"), "w") as file:
        json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
