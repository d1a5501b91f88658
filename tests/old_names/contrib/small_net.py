"""A small net of `tf.contrib.layers` in a TPUEstimator."""

import numpy as np

import tpu_estimator_compat.v1 as tf

tpu = tf.contrib.tpu

STEPS, BATCH = 6, 8


def input_fn(params):
    random = np.random.RandomState(0)
    features = {"x": random.rand(64, 4).astype(np.float32), "id": np.arange(64, dtype=np.int64) % 5}
    dataset = tf.data.Dataset.from_tensor_slices((features, random.rand(64, 1).astype(np.float32)))
    return dataset.repeat().apply(
        tf.contrib.data.map_and_batch(
            lambda features, label: (features, label), params["batch_size"], drop_remainder=True
        )
    )


def loss_of(features, labels):
    """A net of contrib layers with an embedding, whose gradient is sparse, without batch norm."""
    layers = tf.contrib.layers
    with tf.contrib.framework.arg_scope(
        [layers.fully_connected], weights_initializer=tf.random_uniform_initializer(-1, 1, seed=1)
    ):
        embedded = layers.embed_sequence(
            features["id"][:, tf.newaxis], 7, 4, initializer=tf.random_uniform_initializer(seed=2)
        )
        net = layers.fully_connected(features["x"] + embedded[:, 0], 3, tf.nn.tanh)
        net = layers.fully_connected(layers.layer_norm(net), 1, None)
    return tf.losses.mean_squared_error(labels, net)


def make(folder, optimizers, strategy=None, with_host_call=False):
    def host_call(step, loss):
        writer = tf.contrib.summary.create_file_writer(str(folder / "host"))
        with writer.as_default(), tf.contrib.summary.always_record_summaries():
            tf.contrib.summary.scalar("loss_on_host", tf.reduce_mean(loss), step=step[0])
            return tf.contrib.summary.all_summary_ops()

    def model_fn(features, labels, mode, params):
        del params
        step = tf.train.get_global_step()
        losses, train_ops = [], [step.assign_add(1)]
        for name, make_optimizer in optimizers.items():
            with tf.variable_scope(name):
                losses.append(loss_of(features, labels))
            optimizer = tpu.CrossShardOptimizer(make_optimizer())
            own = tf.trainable_variables(f"{name}/")
            train_ops.append(optimizer.minimize(losses[-1], var_list=own))
        loss, train_op = tf.add_n(losses), tf.group(train_ops)
        call = (host_call, [tf.reshape(step, [1]), tf.reshape(loss, [1])])
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, host_call=call if with_host_call else None
        )

    config = tpu.RunConfig(
        cluster=tf.contrib.cluster_resolver.TPUClusterResolver(""),
        model_dir=str(folder),
        tpu_config=tpu.TPUConfig(iterations_per_loop=3),
        train_distribute=strategy,
    )
    return tpu.TPUEstimator(
        model_fn, config=config, use_tpu=True, train_batch_size=BATCH, params={}
    )
