"""A model with one small table: for bad input, which is named."""

import numpy as np
import tensorflow.compat.v1 as tf
from support.legacy_models import training_spec

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding

BATCH, ROWS = 4, 5

SGD = embedding.StochasticGradientDescentParameters(0.1)


def dict_spec(optimizer=SGD, feature=None, table=None, **more):
    return embedding.EmbeddingConfigSpec(
        table_to_config_dict={"words": embedding.TableConfig(ROWS, 2, **(table or {}))},
        feature_to_config_dict={"a": embedding.FeatureConfig("words", **(feature or {}))},
        optimization_parameters=optimizer,
        **more,
    )


def model_fn(features, labels, mode, params):
    del labels, params
    loss = tf.reduce_mean(features["a"] * tf.get_variable("w", [], initializer=tf.ones_initializer))
    return training_spec(mode, loss, tf.train.GradientDescentOptimizer(0.1))


def estimator_of(folder, given, model=model_fn, strategy=None, **tpu_config):
    config = tpu.RunConfig(
        model_dir=str(folder), train_distribute=strategy, tpu_config=tpu.TPUConfig(**tpu_config)
    )
    return tpu.TPUEstimator(
        model, config=config, train_batch_size=BATCH, embedding_config_spec=given
    )


def of(make_features):
    """An input_fn of features that are made in its graph."""

    def input_fn(params):
        del params
        return tf.data.Dataset.from_tensors((make_features(), tf.zeros([BATCH]))).repeat()

    return input_fn


def sparse(values, dtype=np.int64, width=2):
    indices = [(i, 0) for i in range(len(values))]
    return tf.SparseTensor(indices, np.array(values, dtype), [BATCH, width])


def column(key="a", rows=ROWS, **more):
    ids = tf.feature_column.categorical_column_with_identity(key, rows)
    return tf.tpu.experimental.embedding_column(ids, 2, **more)


TABLE = {"words": embedding.TableConfig(ROWS, 2)}

FEATURE = {"a": embedding.FeatureConfig("words")}
