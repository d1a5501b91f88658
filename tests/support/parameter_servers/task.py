"""A task of a cluster: calls train_and_evaluate, and writes down what it observed.

python task.py MODEL FOLDER NAME SETTINGS, with TF_CONFIG in the environment.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import sys
import time
from typing import Any

from support.sides import observing

DEFAULTS = {"original": False, "v2": False, "max_steps": 40, "save_steps": 10, "pause": 0.0}


def main(model: str, folder: str, name: str, settings: str) -> None:
    given = {**DEFAULTS, **json.loads(settings)}
    package = "tensorflow.compat.v1" if given["original"] else "tpu_estimator_compat.v1"
    tf = importlib.import_module(package)
    if not given["v2"]:
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)

    def scenario(own_dir: str, record: Any) -> Any:
        return train_and_evaluate(tf, model, f"{folder}/model", given)

    # Files are for the test to observe, since other tasks still write them.
    found = observing.observe(scenario, f"{folder}/own/{name}", largest=0)
    pathlib.Path(folder, f"{name}.json").write_text(json.dumps(found))


def train_and_evaluate(tf: Any, model: str, model_dir: str, given: dict[str, Any]) -> Any:
    config = {"save_checkpoints_steps": given["save_steps"]}
    if given.get("strategy"):
        config["train_distribute"] = tf.distribute.experimental.ParameterServerStrategy()
    run_config = tf.estimator.RunConfig(
        model_dir,
        1,
        save_summary_steps=10,
        log_step_count_steps=10,
        **config,
        experimental_max_worker_delay_secs=0,
        **given.get("config", {}),
    )
    made = importlib.import_module("support.parameter_servers.models")
    estimator, input_fn = getattr(made, model)(tf, run_config)
    if given.get("by_hand"):
        place = run_config.cluster_spec, run_config.task_type, run_config.task_id
        server = tf.train.Server(place[0], job_name=place[1], task_index=place[2])
        return server.join() if place[1] == "ps" else train(estimator, input_fn, given)
    if given.get("experiment"):
        experiment = tf.contrib.learn.Experiment(
            *(estimator, input_fn, input_fn), train_steps=given["max_steps"], min_eval_frequency=0
        )
        return tf.contrib.learn.learn_runner.run(lambda output_dir: experiment, model_dir)
    return tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, given["max_steps"], hooks=[pauses(tf, given["pause"])]),
        tf.estimator.EvalSpec(input_fn, steps=4, start_delay_secs=0, throttle_secs=1),
    )


def train(estimator: Any, input_fn: Any, given: dict[str, Any]) -> Any:
    estimator.train(input_fn, max_steps=given["max_steps"])
    return estimator.evaluate(input_fn, steps=4)


def pauses(tf: Any, seconds: float) -> Any:
    """A hook that leaves time between steps, so that a test can kill a task meanwhile."""

    class Pauses(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            time.sleep(seconds)

    return Pauses()


if __name__ == "__main__":
    main(*sys.argv[1:])
