"""Model functions with things that a TPU does not take; each marks the lines at fault."""

import tensorflow as tf

import tpu_estimator_compat as tec

WIDTH = 8


def spec(mode, loss, **kwargs):
    """A training spec with a plain optimizer, exchanged over replicas."""
    optimizer = tf.compat.v1.tpu.CrossShardOptimizer(
        tf.compat.v1.train.GradientDescentOptimizer(0.1)
    )
    step = tf.compat.v1.train.get_global_step()
    return tec.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, step),
        predictions={"loss": loss},
        **kwargs,
    )


def logits_of(features):
    """A linear model."""
    weights = tf.compat.v1.get_variable("layer/weights", [WIDTH, 4])
    return features["x"] @ weights


def plain(features, labels, mode, params):
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
    return spec(mode, loss)


def strings(features, labels, mode, params):
    loss = tf.reduce_mean(logits_of(features))
    text = tf.strings.as_string(labels)  # fails: AsString
    number = tf.strings.to_number(text)  # fails: StringToNumber
    return spec(mode, loss + tf.reduce_mean(number))


def python(features, labels, mode, params):
    loss = tf.reduce_mean(logits_of(features))
    twice = tf.numpy_function(lambda x: 2 * x, [labels], tf.int32)  # fails: PyFunc
    twice.set_shape(labels.shape)
    return spec(mode, loss + tf.cast(tf.reduce_sum(twice), tf.float32))


def in_branches(features, labels, mode, params):
    loss = tf.reduce_mean(logits_of(features))

    def branch():
        return tf.compat.v1.Print(loss, [loss])  # fails: Print

    def body(i, total):
        hit = tf.math.segment_sum(labels, labels)  # fails: SegmentSum
        return i + 1, total + tf.cast(tf.reduce_sum(hit), tf.float32)

    loss = tf.cond(loss > 0, branch, lambda: loss)
    _, total = tf.while_loop(lambda i, total: i < 3, body, [0, 0.0])
    return spec(mode, loss + total)


def tables(features, labels, mode, params):
    loss = tf.reduce_mean(logits_of(features))
    values = tf.lookup.KeyValueTensorInitializer([0, 1], [1, 0])
    table = tf.lookup.StaticHashTable(values, 0)  # fails: HashTableV2
    found = table.lookup(labels)  # fails: LookupTableFindV2
    return spec(mode, loss + tf.cast(tf.reduce_sum(found), tf.float32))


def masked(features, labels, mode, params):
    logits = logits_of(features)
    kept = tf.boolean_mask(logits, labels > 1)  # might: Where
    first = tf.unique(labels)[0]  # might: Unique
    loss = tf.reduce_sum(kept) + tf.cast(tf.reduce_sum(first), tf.float32)
    return spec(mode, loss)


def not_constant(features, labels, mode, params):
    logits = logits_of(features)
    count = tf.reduce_max(labels)
    loss = tf.reduce_mean(logits)
    filled = tf.linspace(0.0, 1.0, count)  # fails: Range # might: Range
    return spec(mode, loss + tf.reduce_sum(filled))


def endless_loop(features, labels, mode, params):
    logits = logits_of(features)
    state = [tf.constant(0), logits]
    _, last = tf.while_loop(  # fails: EmptyTensorList
        lambda i, x: i < 3, lambda i, x: [i + 1, x * logits], state
    )
    return spec(mode, tf.reduce_mean(last))


def gradient_without_kernel(features, labels, mode, params):
    image = tf.reshape(features["x"], [-1, 2, 4, 1]) * logits_of(features)[0, 0]
    size = [4, 4]
    grown = tf.compat.v1.image.resize_bicubic(image, size)  # fails: ResizeBicubic ResizeBicubicGrad
    return spec(mode, tf.reduce_mean(grown))


def scalars(features, labels, mode, params):
    loss = tf.reduce_mean(logits_of(features))
    rate = tf.constant(0.1)  # fails: Const
    return spec(mode, loss, host_call=(lambda rate: tf.no_op(), [rate]))


def raises(features, labels, mode, params):
    return spec(mode, features["absent"])  # fails:


def huge(features, labels, mode, params):
    """24 GiB of weights, and as much of slots."""
    table = tf.compat.v1.get_variable("table", [3 * 2**20, 2**11])
    loss = tf.reduce_mean(tf.tensordot(tf.one_hot(labels, 3 * 2**20), table, 1))
    optimizer = tf.compat.v1.tpu.CrossShardOptimizer(tf.compat.v1.train.MomentumOptimizer(0.1, 0.9))
    step = tf.compat.v1.train.get_global_step()
    return tec.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, step))


def wide(features, labels, mode, params):
    """Activations of 4 MiB per example."""
    first = tf.compat.v1.get_variable("first/w", [WIDTH, 2**20])
    second = tf.compat.v1.get_variable("second/w", [2**20, 4])
    hidden = tf.nn.relu(features["x"] @ first)
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, hidden @ second)
    return spec(mode, loss)
