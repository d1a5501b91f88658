"""A model on TPU embedding columns, off TPU: runs here and in the original, as a script.

Given `{"model_dir": ..., "steps": ..., "optimizer": ...}` it trains, evaluates, and prints the
results and what the newest checkpoint holds.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf

BATCH, ROWS = 8, 9


def seeded(seed):
    def initializer(shape, dtype=tf.float32, partition_info=None):
        if partition_info is None:
            return tf.constant(np.random.RandomState(seed).normal(size=shape), dtype)
        values = np.random.RandomState(seed).normal(size=partition_info.full_shape)
        first = partition_info.var_offset[0]
        return tf.constant(values[first : first + shape[0]], dtype)

    return initializer


def tpu_columns():
    experimental = tf.tpu.experimental
    fc = tf.feature_column
    user = fc.categorical_column_with_identity("user", ROWS)
    words = [fc.categorical_column_with_identity(key, ROWS) for key in ("title", "text")]
    liked = fc.categorical_column_with_identity("liked", ROWS)
    liked = fc.weighted_categorical_column(liked, "weights")
    return [
        experimental.embedding_column(user, 3, "sum", seeded(1)),
        *experimental.shared_embedding_columns(words, 3, "mean", seeded(2)),
        experimental.embedding_column(liked, 3, "sqrtn", seeded(3)),
    ]


def data(count=4 * BATCH):
    """Features with ids 1 and more, and labels; every example has an id of each."""
    rng = np.random.RandomState(5)

    def ragged(weights=False):
        counts = rng.randint(1, 4, count)
        indices = [(i, j) for i, n in enumerate(counts) for j in range(n)]
        total = len(indices)
        values = rng.randint(1, ROWS, total)
        shape = [count, 3]
        found = [tf.SparseTensor(indices, values.astype(np.int64), shape)]
        if weights:
            uniform = rng.uniform(0.5, 2.0, total).astype(np.float32)
            found.append(tf.SparseTensor(indices, uniform, shape))
        return found

    liked, weights = ragged(weights=True)
    features = {
        "user": rng.randint(1, ROWS, [count, 1]).astype(np.int64),
        "title": ragged()[0],
        "text": ragged()[0],
        "liked": liked,
        "weights": weights,
        "age": rng.normal(size=[count, 1]).astype(np.float32),
    }
    return features, rng.normal(size=count).astype(np.float32)


def input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(data())
    return dataset.batch(params["batch_size"], drop_remainder=True).repeat()


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.2),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.2),
    "momentum": lambda: tf.train.MomentumOptimizer(0.2, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.2, 0.9, use_nesterov=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(
        0.2, l1_regularization_strength=0.01, l2_regularization_strength=0.02
    ),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.02, 0.9, 0.5, 1e-3),
    "adam": lambda: tf.train.AdamOptimizer(0.02),
}


def model_with(columns, spec_class, dense_features, exchange):
    """A model_fn; `params["optimizer"]` is a name of `OPTIMIZERS`.

    `dense_features` is Keras' layer: shared columns are for it alone.
    """

    def model_fn(features, labels, mode, params):
        age = tf.feature_column.numeric_column("age")
        user, title, text, liked = columns
        dense = tf.concat(
            [
                tf.feature_column.input_layer(features, [age, user, liked]),
                dense_features([title, text])(features),
            ],
            axis=1,
        )
        kernel = tf.get_variable("kernel", [dense.shape[1], 1], initializer=seeded(4))
        out = tf.matmul(dense, kernel)[:, 0]
        if mode == "infer":
            return spec_class(mode, predictions={"out": out})
        loss = 0.5 * tf.reduce_mean(tf.square(out - labels))
        if mode == "eval":
            metrics = (lambda out: {"out": tf.metrics.mean(out)}, [out])
            return spec_class(mode, loss=loss, eval_metrics=metrics)
        optimizer = OPTIMIZERS[params["optimizer"]]()
        if exchange and params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        return spec_class(
            mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step())
        )

    return model_fn


def values_in(model_dir):
    reader = tf.train.load_checkpoint(model_dir)
    return {name: reader.get_tensor(name).tolist() for name in reader.get_variable_to_shape_map()}


def main():
    given = json.loads(sys.stdin.read())
    tf.disable_v2_behavior()
    tf.logging.set_verbosity("ERROR")
    from tensorflow_estimator.python.estimator import estimator_lib  # noqa: F401
    from tensorflow_estimator.python.estimator.tpu import tpu_estimator

    columns = tpu_columns()
    found = []
    for each in given:
        estimator = tpu_estimator.TPUEstimator(
            model_with(
                columns, tpu_estimator.TPUEstimatorSpec, tf.keras.layers.DenseFeatures, False
            ),
            each["model_dir"],
            tf.estimator.tpu.RunConfig(save_summary_steps=None, log_step_count_steps=None),
            {"optimizer": each["optimizer"]},
            use_tpu=False,
            train_batch_size=BATCH,
            eval_batch_size=BATCH,
            embedding_config_spec=tf.estimator.tpu.experimental.EmbeddingConfigSpec(
                columns,
                tf.tpu.experimental.AdagradParameters(9.0),  # which nobody asks off TPU
            ),
        )
        estimator.train(input_fn, steps=each["steps"])
        results = estimator.evaluate(input_fn, steps=4)
        results = {name: float(value) for name, value in results.items()}
        found.append({"results": results, "values": values_in(each["model_dir"])})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
