"""Trains, evaluates and predicts on handwritten digits, with a model_fn as of 2018.

    python migration_guide/examples/digits.py
    python migration_guide/examples/digits.py --dataset mnist --train_steps 5000

Run it twice with one `--model_dir` and it goes on from the last checkpoint: `--train_steps` is the
global step to reach. Where the code differs from that of 2018, a comment says so.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import digits_plots
import keras
import numpy as np
import tensorflow.compat.v1 as tf
import tensorflow_datasets as tfds
import uci_digits
from absl import app, flags, logging

import tpu_estimator_compat as tpu  # was: from tensorflow.contrib import tpu
from tpu_estimator_compat import layers  # was: tf.layers

FLAGS = flags.FLAGS
flags.DEFINE_enum("dataset", "digits", ["digits", "mnist"], "What to learn; mnist is downloaded.")
flags.DEFINE_string("data_dir", None, "Where datasets are kept; default as tensorflow_datasets.")
flags.DEFINE_string("model_dir", None, "Checkpoints and events; default a new temporary directory.")
flags.DEFINE_string("output_dir", None, "Where the PNGs go; default --model_dir.")
flags.DEFINE_bool("use_tpu", True, "TPU rules; without a TPU, they hold on this machine's devices.")
flags.DEFINE_integer("train_steps", 1500, "Global step to train to.", lower_bound=1)
flags.DEFINE_integer("iterations_per_loop", 25, "Steps between two reports.", lower_bound=1)
flags.DEFINE_integer("train_batch_size", 64, "Images per step over all replicas.", lower_bound=1)
flags.DEFINE_integer("predict_batch_size", 64, "Images per prediction step.", lower_bound=1)
flags.DEFINE_float("learning_rate", 3e-3, "At the start; it decays to a twentieth.", lower_bound=0)
flags.DEFINE_integer("seed", 2, "Of first values, shuffling, shifts and dropout.")
flags.DEFINE_bool("verbose", False, "Show the estimator's log too.")

BUILDERS = {"digits": uci_digits.UciDigits.name, "mnist": "mnist"}
CLASSES = 10


# The model.


def model_fn(features, labels, mode, params):
    """Two convolutions and two dense layers."""
    training = mode == tpu.ModeKeys.TRAIN
    logits = network(features["image"], training, params)
    predictions = {
        "class": tf.argmax(logits, axis=-1, output_type=tf.int32),
        "probabilities": tf.nn.softmax(logits),
    }
    if mode == tpu.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)

    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tpu.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))

    global_step = tf.train.get_global_step()
    learning_rate = tf.train.exponential_decay(
        params["learning_rate"], global_step, params["train_steps"], decay_rate=0.05
    )
    optimizer = tf.train.AdamOptimizer(learning_rate)
    if params["use_tpu"]:
        optimizer = tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, global_step)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def network(images, training, params):
    """Logits of shape [batch, 10] for images of shape [batch, side, side, 1]."""
    net = layers.conv2d(images, 32, kernel_size=3, padding="same", activation=tf.nn.relu)
    net = layers.max_pooling2d(net, pool_size=2, strides=2)
    net = layers.conv2d(net, 64, kernel_size=3, padding="same", activation=tf.nn.relu)
    net = layers.max_pooling2d(net, pool_size=2, strides=2)
    net = layers.dense(layers.flatten(net), 128, activation=tf.nn.relu)
    net = layers.dropout(net, rate=params["dropout"], training=training)
    return layers.dense(net, CLASSES, name="logits")


def metric_fn(labels, logits):
    """Runs on the host, on the batches of all replicas together."""
    predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return {"accuracy": tf.metrics.accuracy(labels, predicted)}


# The data.


def examples(params, split):
    """Single images, 0 to 1, with their labels."""
    builder = tfds.builder(params["dataset"], data_dir=params["data_dir"])
    dataset = builder.as_dataset(split=split, as_supervised=True, shuffle_files=False)
    return dataset.map(
        lambda image, label: (
            {"image": tf.cast(image, tf.float32) / 255.0},
            tf.cast(label, tf.int32),
        )
    )


def shifted(features, label):
    """Moves the digit by up to one pixel each way."""
    image = features["image"]
    padded = tf.pad(image, [[1, 1], [1, 1], [0, 0]])
    return {"image": tf.random_crop(padded, image.shape)}, label


def train_input_fn(params):
    dataset = examples(params, "train").cache()
    dataset = dataset.shuffle(10_000).repeat().map(shifted)
    # TPU rules ask for static shapes: every batch is full.
    return dataset.batch(params["batch_size"], drop_remainder=True).prefetch(2)


def eval_input_fn(params):
    return examples(params, "test").batch(params["batch_size"], drop_remainder=True)


def predict_input_fn(params):
    # The last batch may be smaller: the estimator pads it, and drops the padding again.
    return examples(params, "test").batch(params["batch_size"])


def prepare_data(name: str, data_dir: str | None) -> dict[str, int]:
    """Makes the dataset where it is not there yet.

    Returns:
      Split name to number of examples.
    """
    if not sys.stdout.isatty():
        tfds.disable_progress_bar()
    builder = tfds.builder(name, data_dir=data_dir)
    # Datasets are looked for on this machine and at their source, not in tfds's own bucket.
    config = tfds.download.DownloadConfig(try_download_gcs=False)
    builder.download_and_prepare(download_config=config)
    return {split: info.num_examples for split, info in builder.info.splits.items()}


def even_batch_size(total: int, at_most: int = 128) -> int:
    """A batch size that divides `total`, so that equal batches hold each example exactly once.

    With TPU rules, evaluation runs a given number of equal batches. A multiple of 8 is taken, so
    that 1, 2, 4 or 8 replicas can share a batch.

    Args:
      total: how many examples there are.
      at_most: the largest batch size to use.

    Raises:
      ValueError: no multiple of 8 divides `total`.
    """
    sizes = [size for size in range(8, at_most + 1, 8) if total % size == 0]
    if not sizes:
        raise ValueError(f"No multiple of 8 up to {at_most} divides {total} examples.")
    return max(sizes)


# The run.


class ProgressHook(tf.train.SessionRunHook):
    """Shows steps and loss: a bar in a terminal, lines elsewhere.

    Args:
      first_step: global step that training starts from.
      last_step: global step that training ends at.
      every: steps between two lines.
    """

    def __init__(self, first_step: int, last_step: int, every: int):
        self._first, self._last, self._every = first_step, last_step, every
        self._bar = None
        if sys.stdout.isatty():
            self._bar = keras.utils.Progbar(
                last_step - first_step, stateful_metrics=["loss"], unit_name="step"
            )

    def begin(self):
        self._global_step = tf.train.get_global_step()
        self._loss = tf.get_collection(tf.GraphKeys.LOSSES)[-1]  # the estimator adds the spec's

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        # Fetched together with the loss, it could be the value of before the step.
        step, loss = run_context.session.run(self._global_step), run_values.results
        if self._bar:
            self._bar.update(step - self._first, [("loss", loss)])
        elif step % self._every == 0 or step == self._last:
            print(f"step {step} of {self._last}: loss {loss:.4f}", flush=True)


def set_up_logs() -> None:
    """Leaves the screen to the progress display, unless --verbose asks for everything."""
    tf.get_logger().propagate = False  # absl would print each of TensorFlow's lines once more
    if FLAGS.verbose:
        tf.logging.set_verbosity(tf.logging.INFO)
        return
    logging.set_verbosity(logging.WARNING)
    tf.logging.set_verbosity(tf.logging.ERROR)
    warnings.simplefilter("ignore")  # that tf.layers is old is no news here


def make_estimator(model_dir: str, test_examples: int) -> tpu.TPUEstimator:
    config = tpu.RunConfig(
        model_dir=model_dir,
        tf_random_seed=FLAGS.seed,
        # With TPU rules, hooks and summaries have their turn after each loop.
        save_summary_steps=1 if FLAGS.use_tpu else FLAGS.iterations_per_loop,
        save_checkpoints_steps=500,
        tpu_config=tpu.TPUConfig(iterations_per_loop=FLAGS.iterations_per_loop),
    )
    params = {
        "dataset": BUILDERS[FLAGS.dataset],
        "data_dir": FLAGS.data_dir,
        "learning_rate": FLAGS.learning_rate,
        "train_steps": FLAGS.train_steps,
        "dropout": 0.25,
    }
    return tpu.TPUEstimator(
        model_fn,
        config=config,
        params=params,
        use_tpu=FLAGS.use_tpu,
        train_batch_size=FLAGS.train_batch_size,
        eval_batch_size=even_batch_size(test_examples),
        predict_batch_size=FLAGS.predict_batch_size,
    )


def train(estimator: tpu.TPUEstimator) -> None:
    """Trains to --train_steps, from the last checkpoint if there is one."""
    checkpoint = estimator.latest_checkpoint()
    start = int(estimator.get_variable_value("global_step")) if checkpoint else 0
    if checkpoint:
        print(f"Resuming from step {start}: {checkpoint}")
    if start >= FLAGS.train_steps:
        print(f"Already trained to step {start}; a larger --train_steps trains on.")
        return
    hook = ProgressHook(start, FLAGS.train_steps, FLAGS.iterations_per_loop)
    estimator.train(train_input_fn, max_steps=FLAGS.train_steps, hooks=[hook])


def read_test_set(estimator: tpu.TPUEstimator) -> list[digits_plots.Reading]:
    """Predicts every test example and puts the truth beside it."""
    predictions = list(estimator.predict(predict_input_fn))
    test = list(tfds.as_numpy(examples(estimator.params, "test")))
    images = np.stack([features["image"] for features, _ in test])
    labels = np.array([label for _, label in test])
    return digits_plots.readings_of(images, labels, predictions)


def report(estimator: tpu.TPUEstimator, results: dict[str, Any]) -> None:
    """Saves the pictures and prints what came out."""
    readings = read_test_set(estimator)
    output_dir = FLAGS.output_dir or estimator.model_dir
    os.makedirs(output_dir, exist_ok=True)
    loss_png = os.path.join(output_dir, "loss.png")
    misread_png = os.path.join(output_dir, "misread.png")
    digits_plots.plot_loss(
        loss_png,
        digits_plots.read_scalar(estimator.model_dir, "loss"),
        digits_plots.read_scalar(estimator.eval_dir(), "loss"),
        f"Test accuracy {results['accuracy']:.2%} after {results['global_step']} steps",
    )
    digits_plots.plot_misread(misread_png, readings)
    print(f"Test accuracy: {results['accuracy']:.4f}")
    print(f"Misread: {sum(r.wrong for r in readings)} of {len(readings)} test digits")
    print(f"Loss curve: {loss_png}")
    print(f"Misread digits: {misread_png}")
    print(f"Checkpoint: {estimator.latest_checkpoint()}")


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown arguments: {' '.join(argv[1:])}")
    set_up_logs()
    splits = prepare_data(BUILDERS[FLAGS.dataset], FLAGS.data_dir)
    print(f"{splits['train']} digits to train on, {splits['test']} to test on")
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix="digits_")
    estimator = make_estimator(model_dir, splits["test"])
    train(estimator)
    # Equal batches that cover the test set exactly once: see even_batch_size.
    steps = splits["test"] // even_batch_size(splits["test"])
    results = estimator.evaluate(eval_input_fn, steps=steps)
    report(estimator, results)


if __name__ == "__main__":
    app.run(main)
