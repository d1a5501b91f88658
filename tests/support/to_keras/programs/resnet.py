"""A residual network for small images: fixed padding, momentum, a schedule and weight decay."""

import numpy as np
import tensorflow as tf

PARAMS = {"blocks": 2, "classes": 10, "weight_decay": 2e-4, "batch_size": 16}


def batch_norm(inputs, training):
    return tf.layers.batch_normalization(
        inputs=inputs,
        axis=3,
        momentum=0.997,
        epsilon=1e-5,
        center=True,
        scale=True,
        training=training,
        fused=True,
    )


def conv2d_fixed_padding(inputs, filters, kernel_size, strides):
    if strides > 1:
        pad = kernel_size - 1
        before, after = pad // 2, pad - pad // 2
        inputs = tf.pad(inputs, [[0, 0], [before, after], [before, after], [0, 0]])
    return tf.layers.conv2d(
        inputs=inputs,
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=("SAME" if strides == 1 else "VALID"),
        use_bias=False,
        kernel_initializer=tf.variance_scaling_initializer(),
    )


def building_block(inputs, filters, training, projection_shortcut, strides):
    shortcut = inputs
    if projection_shortcut is not None:
        shortcut = projection_shortcut(inputs)
        shortcut = batch_norm(shortcut, training)
    inputs = conv2d_fixed_padding(inputs, filters, 3, strides)
    inputs = batch_norm(inputs, training)
    inputs = tf.nn.elu(inputs)
    inputs = conv2d_fixed_padding(inputs, filters, 3, 1)
    inputs = batch_norm(inputs, training)
    inputs += shortcut
    return tf.nn.elu(inputs)


def block_layer(inputs, filters, blocks, strides, training, name):
    def projection_shortcut(inputs):
        return conv2d_fixed_padding(inputs, filters, 1, strides)

    inputs = building_block(inputs, filters, training, projection_shortcut, strides)
    for _ in range(1, blocks):
        inputs = building_block(inputs, filters, training, None, 1)
    return tf.identity(inputs, name)


def resnet(inputs, blocks, classes, training):
    with tf.variable_scope("resnet_model"):
        inputs = conv2d_fixed_padding(inputs, 8, 3, 1)
        inputs = tf.identity(inputs, "initial_conv")
        inputs = batch_norm(inputs, training)
        inputs = tf.nn.elu(inputs)
        for i in range(3):
            strides = 1 if i == 0 else 2
            name = "block_layer{}".format(i + 1)
            inputs = block_layer(inputs, 8 * 2**i, blocks, strides, training, name)
        inputs = tf.reduce_mean(inputs, [1, 2], keepdims=True)
        inputs = tf.identity(inputs, "final_reduce_mean")
        inputs = tf.squeeze(inputs, [1, 2])
        inputs = tf.layers.dense(inputs=inputs, units=classes)
        return tf.identity(inputs, "final_dense")


def model_fn(features, labels, mode, params):
    logits = resnet(
        features["image"], params["blocks"], params["classes"], mode == tf.estimator.ModeKeys.TRAIN
    )
    predictions = {
        "classes": tf.argmax(logits, axis=1),
        "probabilities": tf.nn.softmax(logits, name="softmax_tensor"),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    cross_entropy = tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=labels)
    l2_loss = params["weight_decay"] * tf.add_n(
        [
            tf.nn.l2_loss(tf.cast(v, tf.float32))
            for v in tf.trainable_variables()
            if "batch_normalization" not in v.name
        ]
    )
    loss = cross_entropy + l2_loss
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {
            "accuracy": tf.metrics.accuracy(labels, predictions["classes"]),
            "accuracy_top_5": tf.metrics.mean(tf.nn.in_top_k(logits, labels, 5)),
        }
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    global_step = tf.train.get_or_create_global_step()
    initial = 0.1 * params["batch_size"] / 128
    learning_rate = tf.train.piecewise_constant(
        global_step, [30, 50], [initial * decay for decay in [1, 0.1, 0.01]]
    )
    optimizer = tf.train.MomentumOptimizer(learning_rate=learning_rate, momentum=0.9)
    minimize_op = optimizer.minimize(loss, global_step)
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(minimize_op, update_ops))


def input_fn():
    rng = np.random.RandomState(0)
    images = rng.normal(size=(128, 16, 16, 3)).astype(np.float32)
    labels = rng.randint(0, 10, 128).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(({"image": images}, labels)).repeat().batch(16)
