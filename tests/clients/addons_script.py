"""A tagger as people wrote them with BERT's code: LAMB or Lookahead, a CRF, F1 scores."""

import json
import sys

import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa
from tensorflow.compat.v1 import estimator as tf_estimator

tf1 = tf.compat.v1
TAGS = 3


def make_optimizer(name):
    if name == "lamb":
        return tfa.optimizers.LAMB(
            0.01, weight_decay_rate=0.01, exclude_from_weight_decay=["bias", "layer_norm"]
        )
    return tfa.optimizers.Lookahead(tfa.optimizers.RectifiedAdam(0.01), sync_period=3)


def drawn(*shape):
    values = np.random.RandomState(shape[0]).randn(*shape)
    return tf1.constant_initializer(values * 0.1)


def model_fn(features, labels, mode, params):
    ids, lengths = features["ids"], features["lengths"]
    table = tf1.get_variable("table", [10, 8], initializer=drawn(10, 8))
    hidden = tf.nn.embedding_lookup(table, ids)
    kernel = tf1.get_variable("kernel", [8, TAGS], initializer=drawn(8, TAGS))
    bias = tf1.get_variable("bias", [TAGS], initializer=tf1.zeros_initializer())
    scores = tf.einsum("btd,dk->btk", tfa.activations.gelu(hidden), kernel) + bias
    transitions = tf1.get_variable("transitions", [TAGS, TAGS], initializer=tf1.zeros_initializer())
    tags, best = tfa.text.crf_decode(scores, transitions, lengths)
    if mode == tf_estimator.ModeKeys.PREDICT:
        return tf_estimator.tpu.TPUEstimatorSpec(mode, predictions={"tags": tags, "best": best})
    likelihood, _ = tfa.text.crf_log_likelihood(scores, labels, lengths, transitions)
    loss = -tf.reduce_mean(likelihood)
    if mode == tf_estimator.ModeKeys.EVAL:

        def metric_fn(labels, tags):
            f1 = tfa.metrics.F1Score(TAGS, average="macro")
            f1.update_state(
                tf.one_hot(tf.reshape(labels, [-1]), TAGS), tf.one_hot(tf.reshape(tags, [-1]), TAGS)
            )
            return {"f1": f1, "accuracy": tf1.metrics.accuracy(labels, tags)}

        return tf_estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, tags])
        )
    optimizer = make_optimizer(params["optimizer"])
    optimizer.iterations = tf1.train.get_or_create_global_step()
    variables = tf1.trainable_variables()
    train_op = tf.group(*optimizer.get_updates(loss, variables))
    scaffold_fn = init_in_order if sys.argv[1] == "original" else None
    return tf_estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn
    )


def init_in_order():
    """TensorFlow 2.15 initializes variables in any order, but Lookahead's slots read the others."""
    first = tf1.trainable_variables()
    others = [v for v in tf1.global_variables() if all(v is not w for w in first)]
    then = tf1.variables_initializer(others)
    return tf1.train.Scaffold(
        init_op=tf1.variables_initializer(first),
        init_fn=lambda scaffold, session: session.run(then),
    )


def input_fn(params):
    rng = np.random.RandomState(0)
    ids = rng.randint(0, 10, [64, 5]).astype(np.int32)
    lengths = rng.randint(1, 6, [64]).astype(np.int32)
    data = tf.data.Dataset.from_tensor_slices(({"ids": ids, "lengths": lengths}, ids % TAGS))
    return data.batch(params["batch_size"], drop_remainder=True)


found = {}
for name in ("lamb", "lookahead"):
    estimator = tf_estimator.tpu.TPUEstimator(
        model_fn,
        config=tf_estimator.tpu.RunConfig(model_dir=sys.argv[1] + "/" + name),
        params={"optimizer": name},
        use_tpu=False,
        train_batch_size=8,
        eval_batch_size=8,
        predict_batch_size=8,
    )
    estimator.train(lambda params: input_fn(params).repeat(), max_steps=20)
    result = estimator.evaluate(input_fn)
    first = next(estimator.predict(lambda params: input_fn(params).map(lambda x, y: x)))
    found[name] = {k: np.asarray(v).tolist() for k, v in {**result, **first}.items()}
    found[name]["names"] = estimator.get_variable_names()
print("FOUND", json.dumps(found))
