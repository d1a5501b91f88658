"""Learns who clicks on what with embedding tables, with a model_fn as of 2019.

    python migration_guide/examples/clicks.py
    python migration_guide/examples/clicks.py --train_steps 4000

The clicks are made up: every user and every item has a secret taste, and the nearer they are, the
likelier is a click. So the best AUC that anyone could reach is known, and printed beside ours.
Where the code differs from that of 2019, a comment says so.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import clicks_plots
import numpy as np
import tensorflow.compat.v1 as tf
from absl import app, flags, logging
from sklearn.metrics import roc_auc_score

import tpu_estimator_compat as tpu  # was: from tensorflow.contrib import tpu
from tpu_estimator_compat import (
    embedding,  # was: from tensorflow.python.tpu import tpu_embedding
    layers,  # was: tf.layers
)

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Checkpoints and events; default a new temporary directory.")
flags.DEFINE_string("output_dir", None, "Where the PNG goes; default --model_dir.")
flags.DEFINE_integer("train_steps", 1000, "Global step to train to.", lower_bound=1)
flags.DEFINE_integer("evaluations", 4, "How often AUC is shown on the way.", lower_bound=1)
flags.DEFINE_integer("batch_size", 512, "Impressions per step over all replicas.", lower_bound=1)
flags.DEFINE_float("learning_rate", 0.1, "Of the tables.", lower_bound=0)
flags.DEFINE_integer("seed", 1, "Of tastes, clicks and first values.")
flags.DEFINE_bool("verbose", False, "Show the estimator's log too.")

USERS, ITEMS, DIMENSION, HISTORY = 2000, 400, 8, 5
TRAIN, TEST = 400_000, 40_960


# The model.


def model_fn(features, labels, mode, params):
    """Two towers: a user and what he clicked on before; an item. Near ones are clicked on."""
    del params
    # float32 activations, in place of the ids that input_fn gives.
    user = tf.concat([features["user"], features["history"]], axis=1)
    user = layers.dense(user, DIMENSION, name="user_tower") + features["user"]
    logits = tf.reduce_sum(user * features["item"], axis=1)
    logits += features["user_bias"][:, 0] + features["item_bias"][:, 0]
    logits += tf.get_variable("bias", [], initializer=tf.zeros_initializer())
    if mode == tpu.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"logit": logits})

    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    if mode == tpu.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))

    optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer(1e-3))  # not of the tables
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def metric_fn(labels, logits):
    """Runs on the host, on the batches of all replicas together."""
    return {"auc": tf.metrics.auc(labels, tf.sigmoid(logits), num_thresholds=1000)}


def tables(learning_rate: float) -> embedding.EmbeddingConfigSpec:
    """Four tables; the items of a user's history are looked up in that of the items."""

    def vectors(rows: int) -> embedding.TableConfig:
        first = tf.truncated_normal_initializer(stddev=0.1)
        return embedding.TableConfig(rows, DIMENSION, initializer=first, combiner="mean")

    def numbers(rows: int) -> embedding.TableConfig:
        return embedding.TableConfig(rows, 1, initializer=tf.zeros_initializer(), combiner=None)

    return embedding.EmbeddingConfigSpec(
        table_to_config_dict={
            "users": vectors(USERS),
            "items": vectors(ITEMS),
            "user_biases": numbers(USERS),
            "item_biases": numbers(ITEMS),
        },
        feature_to_config_dict={
            "user": embedding.FeatureConfig("users"),
            "item": embedding.FeatureConfig("items"),
            "history": embedding.FeatureConfig("items"),
            "user_bias": embedding.FeatureConfig("user_biases"),
            "item_bias": embedding.FeatureConfig("item_biases"),
        },
        optimization_parameters=embedding.AdagradParameters(
            learning_rate, initial_accumulator=1e-7
        ),
    )


# The data.


class Clicks:
    """Impressions with their true probabilities of a click.

    Args:
      seed: of all that is random.

    Attributes:
      train: features and clicks to learn from: a dict of int64 arrays, and float32.
      test: others.
      best: of the test's impressions, the true probability of a click.
    """

    def __init__(self, seed: int):
        rng = np.random.RandomState(seed)
        self._users = rng.normal(size=[USERS, 3])
        self._items = rng.normal(size=[ITEMS, 3])
        self._popularity = rng.normal(scale=0.7, size=ITEMS)
        # What each user liked before: some of the items that are nearest to his taste.
        order = np.argsort(-self._users @ self._items.T, axis=1)[:, :50]
        chosen = np.argsort(rng.uniform(size=order.shape), axis=1)[:, :HISTORY]
        self._history = np.take_along_axis(order, chosen, axis=1)
        *self.train, _ = self._impressions(TRAIN, rng)
        *self.test, self.best = self._impressions(TEST, rng)

    def _impressions(self, count: int, rng: Any) -> tuple[dict[str, Any], Any, Any]:
        user, item = rng.randint(0, USERS, count), rng.randint(0, ITEMS, count)
        taste = np.sum(self._users[user] * self._items[item], axis=1)
        probability = 1 / (1 + np.exp(-(taste + self._popularity[item] - 1)))
        clicks = (rng.uniform(size=count) < probability).astype(np.float32)
        features = {"user": user, "user_bias": user, "item": item, "item_bias": item}
        # 0 stands for no id in dense ids of several columns: a real 0 is left out of a history.
        features["history"] = self._history[user]
        return features, clicks, probability

    def train_input_fn(self, params):
        dataset = tf.data.Dataset.from_tensor_slices(tuple(self.train))
        dataset = dataset.shuffle(20_000, seed=1).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True).prefetch(2)

    def test_input_fn(self, params):
        dataset = tf.data.Dataset.from_tensor_slices(tuple(self.test))
        return dataset.batch(params["batch_size"], drop_remainder=True)

    def predict_input_fn(self, params):
        return tf.data.Dataset.from_tensor_slices(self.test[0]).batch(params["batch_size"])


# The run.


def main(argv: list[str]) -> None:
    del argv
    if not FLAGS.verbose:
        warnings.simplefilter("ignore")
        logging.set_verbosity(logging.ERROR)
        tf.logging.set_verbosity(tf.logging.ERROR)
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix="clicks_")
    clicks = Clicks(FLAGS.seed)
    best = roc_auc_score(clicks.test[1], clicks.best)
    print(f"{TRAIN} impressions of {ITEMS} items to {USERS} users; best possible AUC {best:.4f}")

    config = tpu.RunConfig(
        model_dir=model_dir,
        tf_random_seed=FLAGS.seed,
        tpu_config=tpu.TPUConfig(iterations_per_loop=100),
    )
    estimator = tpu.TPUEstimator(
        model_fn,
        config=config,
        params={},
        train_batch_size=FLAGS.batch_size,
        eval_batch_size=FLAGS.batch_size,
        predict_batch_size=FLAGS.batch_size,
        embedding_config_spec=tables(FLAGS.learning_rate),
    )
    aucs = {}
    for part in range(1, FLAGS.evaluations + 1):
        estimator.train(
            clicks.train_input_fn, max_steps=FLAGS.train_steps * part // FLAGS.evaluations
        )
        results = estimator.evaluate(clicks.test_input_fn, steps=TEST // FLAGS.batch_size)
        aucs[int(results["global_step"])] = float(results["auc"])
        print(f"step {results['global_step']}: AUC {results['auc']:.4f}", flush=True)

    logits = np.array([p["logit"] for p in estimator.predict(clicks.predict_input_fn)])
    found = roc_auc_score(clicks.test[1], logits)
    print(f"AUC {found:.4f} of {best:.4f} possible; checkpoints in {model_dir}")
    path = os.path.join(FLAGS.output_dir or model_dir, "clicks.png")
    clicks_plots.save(path, aucs, best, clicks.test[1], {"model": logits, "best": clicks.best})
    print(f"plotted in {path}")


if __name__ == "__main__":
    app.run(main)
