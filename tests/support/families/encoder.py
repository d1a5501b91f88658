"""Parity family: a two-layer attention encoder whose optimizer makes its own slot variables."""

import numpy as np
import tensorflow.compat.v1 as tf
from legacy_namespace import estimator, tpu
from tensorflow.python.tpu import tpu_function

from support.families import input_fns

VOCABULARY, LENGTH, HIDDEN, HEADS, LAYERS, CLASSES = 40, 12, 32, 4, 2, 3
PARAMS = {"learning_rate": 5e-4, "warmup_steps": 5, "train_steps": 80}
TRAIN_BATCH, EVAL_BATCH, PREDICT_BATCH = 8, 8, 8
PREDICT_EXAMPLES = 13


class WeightDecayAdam(tf.train.Optimizer):
    """Adam without bias correction, with decoupled weight decay; the step is the caller's."""

    def __init__(self, rate, decay=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6):
        super().__init__(False, "WeightDecayAdam")
        self._rate, self._decay, self._epsilon = rate, decay, epsilon
        self._beta_1, self._beta_2 = beta_1, beta_2

    def _slot(self, param, suffix):
        return tf.get_variable(
            param.op.name + suffix,
            shape=param.shape.as_list(),
            dtype=tf.float32,
            trainable=False,
            initializer=tf.zeros_initializer(),
        )

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        updates = []
        for grad, param in grads_and_vars:
            if grad is None:
                continue
            m, v = self._slot(param, "/adam_m"), self._slot(param, "/adam_v")
            next_m = tf.multiply(self._beta_1, m) + tf.multiply(1.0 - self._beta_1, grad)
            next_v = tf.multiply(self._beta_2, v) + tf.multiply(1.0 - self._beta_2, tf.square(grad))
            step = next_m / (tf.sqrt(next_v) + self._epsilon)
            if not any(word in param.op.name for word in ("norm", "bias")):
                step += self._decay * param
            updates += [m.assign(next_m), v.assign(next_v), param.assign(param - self._rate * step)]
        return tf.group(*updates, name=name)


def _examples(seed, count):
    rng = np.random.RandomState(seed)
    ids = rng.randint(1, VOCABULARY, size=(count, LENGTH)).astype(np.int32)
    lengths = rng.randint(4, LENGTH + 1, size=count)
    mask = (np.arange(LENGTH)[None, :] < lengths[:, None]).astype(np.int32)
    ids *= mask
    return {"input_ids": ids, "input_mask": mask, "label_ids": (ids[:, 1] % CLASSES)}


train_input_fn, eval_input_fn, predict_input_fn = input_fns(_examples, 64, 48, PREDICT_EXAMPLES)


def _initializer():
    return tf.truncated_normal_initializer(stddev=0.1)


def _dense(x, units, name, activation=None, use_bias=True):
    """A product with a [in, units] kernel over the last dimension of a [batch, length, in]."""
    with tf.variable_scope(name):
        width = x.shape.as_list()[-1]
        kernel = tf.get_variable("kernel", [width, units], initializer=_initializer())
        flat = tf.matmul(tf.reshape(x, [-1, width]), kernel)
        if use_bias:
            flat += tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        shape = tf.shape(x)
        out = tf.reshape(flat, tf.concat([shape[:-1], [units]], axis=0))
        out.set_shape([*x.shape.as_list()[:-1], units])
        return out if activation is None else activation(out)


def _layer_norm(x, name):
    with tf.variable_scope(name):
        width = x.shape.as_list()[-1]
        scale = tf.get_variable("gamma", [width], initializer=tf.ones_initializer())
        shift = tf.get_variable("beta", [width], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(x, axes=[-1], keep_dims=True)
        return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-6)


def _gelu(x):
    return x * 0.5 * (1.0 + tf.erf(x / np.sqrt(2.0).astype(np.float32)))


def _heads(x):
    x = tf.reshape(x, [-1, LENGTH, HEADS, HIDDEN // HEADS])
    return tf.transpose(x, [0, 2, 1, 3])


def _attention(x, mask):
    # A bias of the keys is invisible to the softmax: its gradient would be rounding and no more.
    query, key, value = (
        _heads(_dense(x, HIDDEN, name, use_bias=name != "key"))
        for name in ("query", "key", "value")
    )
    scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(HIDDEN // HEADS).astype(np.float32)
    scores += (1.0 - tf.cast(mask, tf.float32)[:, None, None, :]) * -10000.0
    context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    return _dense(tf.reshape(context, [-1, LENGTH, HIDDEN]), HIDDEN, "output")


def _encode(ids, mask):
    """Token ids [batch, length] to hidden states [batch, length, HIDDEN]."""
    with tf.variable_scope("embeddings"):
        table = tf.get_variable("words", [VOCABULARY, HIDDEN], initializer=_initializer())
        places = tf.get_variable("positions", [LENGTH, HIDDEN], initializer=_initializer())
        x = _layer_norm(tf.nn.embedding_lookup(table, ids) + places, "layer_norm")
    for i in range(LAYERS):
        with tf.variable_scope(f"layer_{i}"):
            with tf.variable_scope("attention"):
                x = _layer_norm(x + _attention(x, mask), "layer_norm")
            inner = _dense(x, 2 * HIDDEN, "intermediate", _gelu)
            x = _layer_norm(x + _dense(inner, HIDDEN, "output"), "layer_norm")
    return x


def _learning_rate(params, step):
    """A linear rise over the warm-up steps, then a linear fall to zero."""
    rate = tf.train.polynomial_decay(
        tf.constant(params["learning_rate"]), step, params["train_steps"], end_learning_rate=0.0
    )
    ratio = tf.cast(step, tf.float32) / tf.constant(params["warmup_steps"], tf.float32)
    return tf.cond(ratio < 1.0, lambda: ratio * params["learning_rate"], lambda: rate)


def _train_op(loss, params):
    global_step = tf.train.get_or_create_global_step()
    variables = tf.trainable_variables()
    grads = tf.gradients(loss, variables)
    if params["use_tpu"]:
        # The mean over the replicas first, so that the norm clipped is the global batch's.
        shards = tpu_function.get_tpu_context().number_of_shards
        grads = [tf.tpu.cross_replica_sum(tf.convert_to_tensor(g)) / shards for g in grads]
    grads, _ = tf.clip_by_global_norm(grads, clip_norm=1.0)
    optimizer = WeightDecayAdam(_learning_rate(params, global_step))
    train_op = optimizer.apply_gradients(zip(grads, variables, strict=True), global_step)
    # BERT's own scripts order nothing here: then a session of TF1 reads the step for the learning
    # rate now and then after it was raised, which a comparison would show.
    with tf.control_dependencies([train_op]):
        return global_step.assign(global_step + 1)


def _metric_fn(per_example_loss, label_ids, logits):
    predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return {
        "eval_accuracy": tf.metrics.accuracy(label_ids, predicted),
        "eval_loss": tf.metrics.mean(per_example_loss),
    }


def model_fn(features, labels, mode, params):
    del labels  # They travel with the features.
    with tf.variable_scope("encoder"):
        hidden = _encode(features["input_ids"], features["input_mask"])
        with tf.variable_scope("pooler"):
            pooled = _dense(hidden[:, 0:1, :] + hidden[:, 1:2, :], HIDDEN, "dense", tf.tanh)
    logits = tf.squeeze(_dense(pooled, CLASSES, "classifier"), axis=1)

    if mode == estimator.ModeKeys.PREDICT:
        predictions = {"probabilities": tf.nn.softmax(logits), "pooled": tf.squeeze(pooled, 1)}
        return tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)

    one_hot = tf.one_hot(features["label_ids"], CLASSES, dtype=tf.float32)
    per_example_loss = -tf.reduce_sum(one_hot * tf.nn.log_softmax(logits), axis=-1)
    loss = tf.reduce_mean(per_example_loss, name="total_loss")
    if mode == estimator.ModeKeys.TRAIN:
        return tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=_train_op(loss, params))
    metrics = (_metric_fn, [per_example_loss, features["label_ids"], logits])
    return tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=metrics)
