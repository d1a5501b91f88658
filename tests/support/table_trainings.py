"""Trainings of embedding tables, the same for any number of processes."""

import numpy as np
import tensorflow.compat.v1 as tf
import tf_keras

import tpu_estimator_compat as tpu
from support import columns_probe
from tpu_estimator_compat import embedding

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


def with_columns(model_dir, parameters, optimizer, config, initialize=None, **more):
    """An estimator with feature columns, on tables with the optimizer of `parameters`.

    `initialize` is called after model_fn: for init_from_checkpoint.
    """
    columns = columns_probe.tpu_columns()
    model_fn = columns_probe.model_with(
        columns, tpu.TPUEstimatorSpec, tf_keras.layers.DenseFeatures, exchange=True
    )

    def initialized_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        initialize()
        return spec

    return tpu.TPUEstimator(
        initialized_model_fn if initialize else model_fn,
        str(model_dir),
        config,
        {"optimizer": optimizer},
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
        predict_batch_size=BATCH,
        embedding_config_spec=embedding.EmbeddingConfigSpec(columns, parameters),
        **more,
    )


def of_columns(model_dir, warm_start_from=None, initialized_from=None):
    """An estimator with feature columns; `initialized_from` is for init_from_checkpoint."""

    def initialize():
        tf.train.init_from_checkpoint(initialized_from, {"/": "/"})

    return with_columns(
        model_dir,
        embedding.AdagradParameters(0.2),
        "sgd",  # without slots, which init_from_checkpoint would look for
        tpu.RunConfig(tpu_config=tpu.TPUConfig(2), save_checkpoints_steps=3),
        initialize if initialized_from else None,
        warm_start_from=warm_start_from,
    )


def receiver_fn():
    """A receiver of the features as tf.train.Examples."""
    parsed = {key: tf.VarLenFeature(tf.int64) for key in ("user", "title", "text", "liked")}
    parsed["weights"] = tf.VarLenFeature(tf.float32)
    parsed["age"] = tf.FixedLenFeature([1], tf.float32)
    return tpu.estimator.export.build_parsing_serving_input_receiver_fn(parsed)()


def of_dicts(model_dir):
    """An estimator with a table of one row, sequences, and an Adam that changes every row."""

    def model_fn(features, labels, mode, params):
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
