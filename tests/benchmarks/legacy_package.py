"""Legacy package: what the `run` command adds to the import of old modules.

A package of many modules is imported by a script, in a process of its own each time: by Python
alone, and by `run`. The modules use dead names in functions only, so that Python can import them,
too. TensorFlow has been imported before the clock starts: it takes seconds either way.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks.measures import Samples

MODULES = 50
_ROOT = pathlib.Path(__file__).parent.parent.parent
_VARIANTS = {"plain": [], "run": ["-m", "tpu_estimator_compat", "run"]}

_SCRIPT = """
import time
import tensorflow as tf
started = time.process_time()
import legacy_package.module_{last}
print("seconds", time.process_time() - started)
"""

_HEAD = '''
"""Layers and losses, number {number}."""
from __future__ import absolute_import, division, print_function

import collections
import os

import numpy as np
import tensorflow as tf
{imports}
Config = collections.namedtuple("Config", ["units", "rate", "scope"])
'''

_FUNCTION = '''

class Block{name}(object):
    """A block of layers."""

    def __init__(self, units=64, rate=0.1, scope="block"):
        self.config = Config(units=units, rate=rate, scope=os.path.join(scope, "{name}"))

    def __call__(self, inputs, mode):
        training = mode == tf.estimator.ModeKeys.TRAIN
        with tf.variable_scope(self.config.scope, reuse=tf.AUTO_REUSE):
            hidden = tf.layers.dense(inputs, self.config.units, activation=tf.nn.relu)
            hidden = tf.layers.dropout(hidden, rate=self.config.rate, training=training)
            return tf.contrib.layers.layer_norm(hidden, begin_norm_axis=-1)


def loss{name}(logits, labels, weights=None):
    """Cross entropy with label smoothing."""
    classes = int(np.prod(logits.shape[-1:].as_list()))
    smooth = tf.one_hot(labels, classes, on_value=0.9, off_value=0.1 / max(1, classes - 1))
    losses = tf.nn.softmax_cross_entropy_with_logits_v2(labels=smooth, logits=logits)
    if weights is not None:
        losses = losses * tf.to_float(weights) / (1e-6 + tf.reduce_sum(weights))
    tf.summary.scalar("loss{name}", tf.reduce_mean(losses))
    return [tf.reduce_mean(part) for part in tf.split(losses, 2)]
'''


def run(rounds: int) -> dict[str, Samples]:
    """Imports the package in turns.

    Returns:
      Milliseconds of CPU time by variant, with nothing in Python's cache.
    """
    samples: Samples = {}
    for turn in range(rounds):
        with contextlib.ExitStack() as stack:
            # A copy each: the bytecode that Python keeps would serve `run`, too.
            scripts = {
                variant: _write(pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())))
                for variant in list(_VARIANTS)[:: 1 if turn % 2 == 0 else -1]
            }
            for variant, script in scripts.items():
                samples.setdefault(variant, []).append(_import(script, variant))
    return {"package_import": samples}


def _write(directory: pathlib.Path) -> pathlib.Path:
    """The script; each module of the package imports the one before."""
    package = directory / "legacy_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for number in range(MODULES):
        imports = f"from legacy_package import module_{number - 1}\n" if number else ""
        text = _HEAD.format(number=number, imports=imports)
        text += "".join(_FUNCTION.format(name=name) for name in range(10))
        (package / f"module_{number}.py").write_text(text.lstrip())
    script = directory / "train.py"
    script.write_text(_SCRIPT.format(last=MODULES - 1))
    return script


def _import(script: pathlib.Path, variant: str) -> float:
    command = [sys.executable, *_VARIANTS[variant], str(script)]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return 1000 * float(done.stdout.rpartition("seconds")[2])
