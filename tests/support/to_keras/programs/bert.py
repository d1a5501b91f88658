"""Google's BERT as a classifier, of the installed `bert-tensorflow` 1.0.4."""

import numpy as np
import tensorflow as tf
from bert import modeling, optimization

LENGTH = 24
PARAMS = {
    "vocab_size": 500,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "classes": 3,
    "dropout": 0.1,
}


def create_model(features, training, params):
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    names += ("intermediate_size", "max_position_embeddings")
    config = modeling.BertConfig(**{name: params[name] for name in names})
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = params["dropout"]
    model = modeling.BertModel(
        config=config,
        is_training=training,
        input_ids=features["input_ids"],
        input_mask=features["input_mask"],
        token_type_ids=features["segment_ids"],
        use_one_hot_embeddings=False,
    )
    output_layer = model.get_pooled_output()
    hidden_size = output_layer.shape[-1].value
    output_weights = tf.get_variable(
        "output_weights",
        [params["classes"], hidden_size],
        initializer=tf.truncated_normal_initializer(stddev=0.02),
    )
    output_bias = tf.get_variable(
        "output_bias", [params["classes"]], initializer=tf.zeros_initializer()
    )
    with tf.variable_scope("loss"):
        if training and params["dropout"]:
            output_layer = tf.nn.dropout(output_layer, keep_prob=1 - params["dropout"])
        logits = tf.matmul(output_layer, output_weights, transpose_b=True)
        logits = tf.nn.bias_add(logits, output_bias)
        return logits, tf.nn.softmax(logits, axis=-1)


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    logits, probabilities = create_model(features, training, params)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"probabilities": probabilities})
    log_probs = tf.nn.log_softmax(logits, axis=-1)
    one_hot_labels = tf.one_hot(labels, depth=params["classes"], dtype=tf.float32)
    per_example_loss = -tf.reduce_sum(one_hot_labels * log_probs, axis=-1)
    loss = tf.reduce_mean(per_example_loss)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {
            "eval_accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=-1)),
            "eval_loss": tf.metrics.mean(per_example_loss),
        }
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    train_op = optimization.create_optimizer(loss, 1e-3, 100, 5, False)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    features = {
        "input_ids": rng.randint(0, 500, (64, LENGTH)).astype(np.int32),
        "input_mask": (np.arange(LENGTH) < rng.randint(5, LENGTH, (64, 1))).astype(np.int32),
        "segment_ids": rng.randint(0, 2, (64, LENGTH)).astype(np.int32),
    }
    labels = rng.randint(0, 3, 64).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(16)


OF_PACKAGE = (
    "bert/modeling.py",
    "BertModel gelu dropout layer_norm layer_norm_and_dropout create_initializer "
    "embedding_lookup embedding_postprocessor create_attention_mask_from_input_mask "
    "attention_layer transformer_model get_shape_list reshape_to_matrix "
    "reshape_from_matrix",
)
"""Further code of the model: its file and names there."""
