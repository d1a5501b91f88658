"""Input modes: examples per second through an estimator, over iterating the same dataset alone.

The model does next to nothing, so that input is all there is. Every mode takes turns with the bare
iteration, round by round, in one process.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

MODES = ("PER_SHARD_V1", "PER_HOST_V1", "PER_HOST_V2", "BROADCAST")
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # usual for photographs
KINDS = {"images": (32, 20), "tokens": (64, 1500)}
"""Examples in a global batch, and steps of a block."""

TARGET = 0.95


def run(rounds: int, replicas: int = 1) -> dict[str, dict[str, list[float]]]:
    """Rates in a process of its own: by kind of input, then by mode; `alone` is the iteration."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, __file__, str(rounds), str(replicas), directory]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def text(found: dict[str, dict[str, list[float]]], replicas: int) -> str:
    lines = []
    for kind, rates in found.items():
        alone = statistics.median(rates["alone"])
        lines.append(f"input of {kind}, {replicas} replica(s): alone {alone:.4g} examples/s")
        for mode in MODES:
            pairs = zip(rates[mode], rates["alone"], strict=True)
            ratio = statistics.median(ours / alone for ours, alone in pairs)
            mark = "" if replicas > 1 else "PASS" if ratio >= TARGET else "below target"
            lines.append(f"    {mode}/alone = {ratio:.3f} (>= {TARGET} on one replica) {mark}")
    return "\n".join(lines)


def dataset(kind: str, batch_size: int) -> Any:
    """Images of 224x224x3, flipped and normalised, or token ids of length 128; endless."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.RandomState(0)
    if kind == "tokens":
        ids = tf.constant(rng.randint(0, 30000, [4096, 128], dtype=np.int32))
        rows = tf.data.Dataset.from_tensor_slices(ids).repeat()
        return rows.batch(batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    pool = tf.constant(rng.randint(0, 256, [64, 224, 224, 3], dtype=np.uint8))

    def augment(image: tf.Tensor) -> tf.Tensor:
        flipped = tf.image.random_flip_left_right(image)
        return (tf.cast(flipped, tf.float32) / 255.0 - MEAN) / DEVIATION

    images = tf.data.Dataset.from_tensor_slices(pool).repeat()
    images = images.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return images.batch(batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def model_fn(features: Any, mode: str, params: dict[str, Any]) -> Any:
    import tensorflow.compat.v1 as tf

    from tpu_estimator_compat import tpu

    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = weight * tf.cast(tf.reshape(features, [-1])[0], tf.float32)
    exchanged = tf.tpu.cross_replica_sum(loss)  # replicas that share nothing are refused
    with tf.control_dependencies([exchanged]):
        train_op = tf.assign_add(tf.train.get_global_step(), 1)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def _alone(kind: str, batch_size: int) -> Any:
    """A function that iterates n batches; returns their number of examples per second."""
    import tensorflow as tf

    iterator = iter(dataset(kind, batch_size))

    @tf.function
    def loop(n: tf.Tensor) -> tf.Tensor:
        def body(i: tf.Tensor, seen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            first = tf.reshape(next(iterator), [-1])[0]
            return i + 1, seen + tf.cast(first, tf.float32)

        return tf.while_loop(lambda i, seen: i < n, body, (0, 0.0))

    def rate(steps: int) -> float:
        loop(tf.constant(10))
        started = time.perf_counter()
        loop(tf.constant(steps))
        return steps * batch_size / (time.perf_counter() - started)

    return rate


def _through(mode: str, kind: str, batch_size: int, directory: str, strategy: Any) -> Any:
    """The same, by an estimator in `mode`."""
    import tensorflow.compat.v1 as tf

    from tpu_estimator_compat import tpu

    class Timer(tf.train.SessionRunHook):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.times.append(time.perf_counter())

        def begin(self) -> None:
            self.times: list[float] = []

    def rate(steps: int) -> float:
        config = tpu.RunConfig(
            model_dir=directory,
            save_checkpoints_secs=None,
            save_summary_steps=0,
            log_step_count_steps=None,
            train_distribute=strategy,
            tpu_config=tpu.TPUConfig(
                iterations_per_loop=steps,
                per_host_input_for_training=getattr(tpu.InputPipelineConfig, mode),
            ),
        )
        estimator = tpu.TPUEstimator(
            model_fn, config=config, use_tpu=True, train_batch_size=batch_size
        )
        timer = Timer()
        input_fn = lambda params: dataset(kind, params["batch_size"])  # noqa: E731
        estimator.train(input_fn, hooks=[timer], steps=2 * steps)
        return steps * batch_size / (timer.times[1] - timer.times[0])

    return rate


def _main(rounds: int, replicas: int, directory: str) -> None:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    logical = [tf.config.LogicalDeviceConfiguration()] * replicas
    tf.config.set_logical_device_configuration(cpu, logical)
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    strategy = None
    if replicas > 1:
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])
    found: dict[str, dict[str, list[float]]] = {}
    for kind, (batch_size, steps) in KINDS.items():
        variants = {"alone": _alone(kind, batch_size)}
        for mode in MODES:
            variants[mode] = _through(mode, kind, batch_size, f"{directory}/{mode}", strategy)
        found[kind] = {name: [] for name in variants}
        for turn in range(rounds):
            names = list(variants) if turn % 2 == 0 else list(variants)[::-1]
            for name in names:
                found[kind][name].append(variants[name](steps))
    print(json.dumps(found))


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.path[0] = str(pathlib.Path(__file__).parents[2])
    _main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
