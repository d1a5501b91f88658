"""Trainings of embedding tables, by one process or by several: see support/cluster.py.

python tables_worker.py train RESULT_FILE ARGUMENTS, with TF_CONFIG in the environment.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import numpy as np
import tensorflow.compat.v1 as tf
import tf_keras

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding

sys.path.insert(1, str(pathlib.Path(__file__).parents[1]))

from embedding import columns_probe

BATCH = columns_probe.BATCH


class LastValues(tf.train.SessionRunHook):
    """What this machine's variables hold in the end."""

    def begin(self):
        self._variables = {v.op.name: v for v in tf.global_variables()}

    def end(self, session):
        self.values = {k: v.tolist() for k, v in session.run(self._variables).items()}


def share_of(dataset):
    """An input_fn of this machine's examples of batches, the same for any number of machines."""

    def input_fn(params):
        size = params["batch_size"]
        first = params["context"].current_host * size

        def cut(tensor):
            if isinstance(tensor, tf.SparseTensor):
                return tf.sparse.slice(tensor, [first, 0], [size, tensor.dense_shape[1]])
            return tensor[first : first + size]

        def of_this_machine(features, labels):
            return {name: cut(feature) for name, feature in features.items()}, cut(labels)

        return dataset().map(of_this_machine)

    return input_fn


share = share_of(lambda: columns_probe.input_fn({"batch_size": BATCH}))


def of_columns(model_dir, warm_start_from=None, initialized_from=None):
    """An estimator with feature columns; `initialized_from` is for init_from_checkpoint."""
    columns = columns_probe.tpu_columns()
    model_fn = columns_probe.model_with(
        columns, tpu.TPUEstimatorSpec, tf_keras.layers.DenseFeatures, exchange=True
    )

    def initialized_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        tf.train.init_from_checkpoint(initialized_from, {"/": "/"})
        return spec

    return tpu.TPUEstimator(
        initialized_model_fn if initialized_from else model_fn,
        model_dir,
        tpu.RunConfig(tpu_config=tpu.TPUConfig(2), save_checkpoints_steps=3),
        {"optimizer": "sgd"},  # without slots, which init_from_checkpoint would look for
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
        predict_batch_size=BATCH,
        warm_start_from=warm_start_from,
        embedding_config_spec=embedding.EmbeddingConfigSpec(
            columns, embedding.AdagradParameters(0.2)
        ),
    )


def of_dicts(model_dir):
    """An estimator with a table of one row, sequences, and an Adam that changes every row."""

    def model_fn(features, labels, mode, params):
        del params
        kernel = tf.get_variable("kernel", [2, 1], initializer=tf.ones_initializer())
        out = tf.matmul(tf.reduce_sum(features["words"], 1) + features["bias"], kernel)[:, 0]
        loss = tf.reduce_mean(tf.square(out - labels))
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    seeded = columns_probe.seeded
    adam = embedding.AdamParameters(0.1, lazy_adam=False)
    return tpu.TPUEstimator(
        model_fn,
        model_dir,
        tpu.RunConfig(save_checkpoints_steps=2),
        train_batch_size=BATCH,
        embedding_config_spec=embedding.EmbeddingConfigSpec(
            table_to_config_dict={
                "biases": embedding.TableConfig(1, 2, seeded(1), combiner=None),
                "words": embedding.TableConfig(5, 2, seeded(2), optimization_parameters=adam),
            },
            feature_to_config_dict={
                "bias": embedding.FeatureConfig("biases"),
                "words": embedding.FeatureConfig("words", max_sequence_length=3),
            },
            optimization_parameters=embedding.FtrlParameters(0.2),
        ),
    )


def sentences():
    """Batches of made ids; 0 stands for none."""
    rng = np.random.RandomState(7)
    features = {
        "bias": np.zeros(4 * BATCH, np.int64),
        "words": tf.sparse.from_dense(rng.randint(0, 5, [4 * BATCH, 4])),
    }
    labels = rng.normal(size=4 * BATCH).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    return dataset.batch(BATCH, drop_remainder=True).repeat()


def trained(estimator, input_fn, *steps):
    """What variables hold after steps, one call of `train` for each number of them."""
    hook = LastValues()
    for max_steps in steps:
        estimator.train(input_fn, max_steps=max_steps, hooks=[hook])
    return hook.values


def train(root, earlier):
    """All trainings, into folders of `root`.

    Args:
      root: the chief's; another machine has nothing there.
      earlier: model_dir of a training by one process, where it was after 3 steps.
    """
    folder = pathlib.Path(root)
    resumed = str(folder / "resumed")
    return {
        "fresh": trained(of_columns(str(folder / "fresh")), share, 3, 6),
        "resumed": trained(of_columns(resumed), share, 6),
        "warm": trained(of_columns(str(folder / "warm"), warm_start_from=earlier), share, 1),
        "initialized": trained(
            of_columns(str(folder / "initialized"), initialized_from=earlier), share, 1
        ),
        "dicts": trained(of_dicts(str(folder / "dicts")), share_of(sentences), 3, 5),
    }


if __name__ == "__main__":
    arguments = json.loads(sys.argv[3])
    if tpu.RunConfig().task_type == "worker" and "TF_CONFIG" in os.environ:
        arguments["root"] += "-worker"
    pathlib.Path(sys.argv[2]).write_text(json.dumps(train(**arguments)))
