"""ALBERT of the installed `albert-tensorflow` 1.1, as a classifier: shared layers."""

import numpy as np
import tensorflow as tf
from albert import modeling

LENGTH = 24
PARAMS = {"classes": 2, "layers": 4, "dropout": 0.0, "learning_rate": 1e-3}


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    config = modeling.AlbertConfig(
        vocab_size=500,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=params["layers"],
        num_attention_heads=4,
        intermediate_size=64,
        hidden_dropout_prob=params["dropout"],
        attention_probs_dropout_prob=params["dropout"],
        max_position_embeddings=64,
    )
    model = modeling.AlbertModel(
        config=config,
        is_training=training,
        input_ids=features["input_ids"],
        input_mask=features["input_mask"],
        token_type_ids=features["segment_ids"],
        use_one_hot_embeddings=False,
    )
    logits = tf.layers.dense(
        model.get_pooled_output(),
        params["classes"],
        kernel_initializer=tf.truncated_normal_initializer(stddev=0.02),
        name="classifier",
    )
    probabilities = tf.nn.softmax(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"probabilities": probabilities, "sequence": model.get_sequence_output()}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"auc": tf.metrics.auc(labels, probabilities[:, 1])}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.AdamOptimizer(params["learning_rate"], epsilon=1e-6)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    train_op = optimizer.apply_gradients(zip(gradients, variables), tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    features = {
        "input_ids": rng.randint(0, 500, (64, LENGTH)).astype(np.int32),
        "input_mask": (np.arange(LENGTH) < rng.randint(5, LENGTH, (64, 1))).astype(np.int32),
        "segment_ids": rng.randint(0, 2, (64, LENGTH)).astype(np.int32),
    }
    labels = rng.randint(0, 2, 64).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(16)


OF_PACKAGE = (
    "albert/modeling.py",
    "AlbertModel gelu dropout layer_norm layer_norm_and_dropout create_initializer "
    "get_timing_signal_1d_given_position get_shape_list embedding_lookup "
    "embedding_postprocessor einsum_via_matmul dense_layer_3d dense_layer_3d_proj "
    "dense_layer_2d dot_product_attention attention_layer attention_ffn_block "
    "transformer_model create_attention_mask_from_input_mask",
)
"""Further code of the model: its file and names there."""
