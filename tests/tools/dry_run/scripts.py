"""A model in a module, which scripts of these tests import, and a run of such a script."""

import json
import os
import pathlib
import subprocess
from typing import Any

from support import python_path

ROOT = pathlib.Path(__file__).parents[3]

MODEL = """
import numpy as np
import tensorflow.compat.v1 as tf


def model_fn(features, labels, mode, params):
    logits = tf.layers.dense(features["x"], 2, kernel_initializer=tf.zeros_initializer())
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions={"p": tf.nn.softmax(logits)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = np.ones((64, 4), np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, np.zeros(64, np.int32))).batch(8)


def train_fn():
    return input_fn().repeat()


def serving():
    x = tf.placeholder(tf.float32, [None, 4])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def estimator(model_dir, **settings):
    config = tf.estimator.RunConfig(model_dir, **settings)
    return tf.estimator.Estimator(model_fn, config=config, params={})
"""

IMPORTS = "import os\nimport tensorflow as tf\nfrom model import *\n"


class Scripts:
    """Runs scripts in a folder that has the model."""

    def __init__(self, forks: Any, folder: pathlib.Path):
        self._forks = forks
        self.folder = folder
        (folder / "model.py").write_text(MODEL)

    def run(self, text: str, *words: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
        """The report of a dry run; `output`: what the process wrote to standard output."""
        command = ("run", "--dry-run", "--json", "report.json", *options)
        done = self.start(text, *command, words=words)
        found = json.loads((self.folder / "report.json").read_text())
        assert found["status"] == done.returncode, (done.returncode, done.stderr)
        return {**found, "output": done.stdout, "errors": done.stderr}

    def start(
        self, text: str, *command: str, words: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        (self.folder / "script.py").write_text(IMPORTS + text)
        environment = {**os.environ, "PYTHONPATH": python_path.joined(ROOT)}
        words = ("-m", "tpu_estimator_compat", *command, "script.py", *words)
        return self._forks.run(*words, cwd=self.folder, env=environment)

    def files(self) -> set[str]:
        """What the scripts left, besides themselves and the report."""
        own = {"model.py", "script.py", "report.json"}
        found = (p for p in self.folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        return {str(p.relative_to(self.folder)) for p in found} - own


def names(report: dict[str, Any]) -> list[str]:
    return [call["call"] for call in report["calls"]]
