"""Large model: start, train and save a model of gigabytes, and report the peak of memory.

Four matrices of equal size, each used by a lookup of a few rows, with momentum: as many bytes of
slots as of variables. Gradients are a few rows, so the peak counts variables, slots, their initial
values, the checkpoint's writing, and what the process and its imports take; not activations.
Variables with sparse updates are TensorFlow's hard case: every read of one makes a copy,
unless copying is switched off first.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

WIDTH, MATRICES, STEPS = 1024, 4, 2


def run(gib: float) -> dict[str, float]:
    """Runs `gib` GiB of variables in a process of its own.

    Returns:
      `state` (variables and slots), `peak`, `baseline` (after imports), all in bytes, `seconds`.
    """
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, __file__, str(gib), directory]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def text(found: dict[str, float]) -> str:
    state, peak = found["state"], found["peak"]
    mark = "PASS" if peak / state <= 1.2 else "below target"
    own = (peak - found["baseline"]) / state
    return (
        f"large model: variables and slots {state / 2**30:.2f} GiB, {STEPS} steps and a save "
        f"in {found['seconds']:.1f} s\n    peak {peak / 2**30:.2f} GiB = {peak / state:.3f} of it "
        f"(<= 1.2) {mark}; {own:.3f} without the {found['baseline'] / 2**20:.0f} MiB after imports"
    )


def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
    """Looks up rows of each matrix and pulls their mean to zero."""
    import tensorflow.compat.v1 as tf

    from tpu_estimator_compat import tpu

    rows, loss = params["rows"], 0.0
    for i in range(MATRICES):
        matrix = tf.get_variable(
            f"matrix_{i}", [rows, WIDTH], initializer=tf.random_normal_initializer(stddev=0.02)
        )
        loss += tf.reduce_mean(tf.square(tf.nn.embedding_lookup(matrix, features["ids"])))
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def _train(gib: float, directory: str) -> None:
    import tensorflow as tf

    from benchmarks import gate
    from tpu_estimator_compat import tpu

    baseline = gate.memory()["resident"]
    started = time.perf_counter()
    rows = int(gib * 2**30 / MATRICES / WIDTH / 4)
    estimator = tpu.TPUEstimator(
        model_fn=model_fn,
        config=tpu.RunConfig(model_dir=directory, save_checkpoints_steps=STEPS),
        use_tpu=False,
        train_batch_size=8,
        params={"rows": rows},
    )

    def input_fn(params: dict[str, Any]) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensors({"ids": tf.range(params["batch_size"])}).repeat()

    estimator.train(input_fn, max_steps=STEPS)
    assert estimator.latest_checkpoint().endswith(f"model.ckpt-{STEPS}")
    answer = {
        "state": 2 * MATRICES * rows * WIDTH * 4,
        "baseline": baseline,
        "seconds": time.perf_counter() - started,
        **gate.memory(),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.path[0] = str(pathlib.Path(__file__).parent.parent)
    _train(float(sys.argv[1]), sys.argv[2])
