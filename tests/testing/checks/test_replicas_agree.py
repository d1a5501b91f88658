"""Bugs of replicas in training steps that `check_replicas_agree` must name."""

import numpy as np
import pytest
import tensorflow as tf_v2

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.testing import check_replicas_agree

from ..models import X, Y, classifier, failure, gradient_descent, train_wrapped
from ..sound_models import SOUND, normalized

SELECTED = ("adam", "embedding", "lstm", "weighted", "clipped_sum", "accumulation", "loss_scale")


@pytest.mark.parametrize("name", [*SELECTED, "gan", "frozen", "averages", "bfloat16"])
def test_sound(name):
    check_replicas_agree(*SOUND[name], replicas=2)


def train_summed(loss):
    wrapped = tf.tpu.CrossShardOptimizer(gradient_descent(), tf.losses.Reduction.SUM)
    return wrapped.minimize(loss, tf.train.get_global_step())


def test_sound_sum_over_four_replicas():
    def loss_of(labels, logits, params):
        losses = tf.losses.sparse_softmax_cross_entropy(
            labels, logits, reduction=tf.losses.Reduction.NONE
        )
        return tf.reduce_sum(losses) / len(Y)

    check_replicas_agree(classifier(loss_of=loss_of, train=train_summed), X, Y, replicas=4)


def train_alone(loss):
    return gradient_descent().minimize(loss, tf.train.get_global_step())


def test_optimizer_without_cross_shard_optimizer():
    found = failure(check_replicas_agree, classifier(train=train_alone), X, Y)
    assert "No gradient is added up over 2 replicas: each would train alone." in found
    assert "in train_alone" in found
    assert "tf.contrib.tpu.CrossShardOptimizer(optimizer)" in found


def test_one_of_two_optimizers_is_not_wrapped():
    def train(loss):
        kernel, bias = tf.trainable_variables()
        return tf.group(
            tf.tpu.CrossShardOptimizer(gradient_descent()).minimize(
                loss, tf.train.get_global_step(), [kernel]
            ),
            gradient_descent().minimize(loss, var_list=[bias]),
        )

    found = failure(check_replicas_agree, classifier(train=train), X, Y)
    assert "dense/bias: each of 2 replicas has another value after the step." in found
    assert "dense/kernel" not in found
    assert "CrossShardOptimizer(optimizer)" in found


def divided_by_replicas(labels, logits, params):
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return loss / params["context"].num_replicas


def test_loss_is_divided_twice():
    found = failure(check_replicas_agree, classifier(loss_of=divided_by_replicas), X, Y, replicas=4)
    assert "All gradients: on 4 replicas 1/4 times what they are on one." in found
    assert "divided by the number of replicas (4) once too often" in found
    assert 'return loss / params["context"].num_replicas' in found
    assert "the mean over the replica's examples, once" in found


def test_mean_loss_is_added_up():
    found = failure(check_replicas_agree, classifier(train=train_summed), X, Y)
    assert "All gradients: on 2 replicas 2 times what they are on one." in found
    assert "nothing divides by the number of replicas (2)" in found


def test_sum_over_examples():
    def loss_of(labels, logits, params):
        return 8.0 * tf.losses.sparse_softmax_cross_entropy(
            labels, logits, reduction=tf.losses.Reduction.SUM
        )

    found = failure(check_replicas_agree, classifier(loss_of=loss_of), X, Y)
    assert "All gradients: on 2 replicas 1/2 times what they are on one." in found
    assert "or is a sum over the replica's examples" in found


def test_gradients_are_clipped_on_each_replica():
    def train(loss):
        optimizer = tf.tpu.CrossShardOptimizer(gradient_descent())
        pairs = optimizer.compute_gradients(loss)
        clipped = [(tf.clip_by_value(g, -0.05, 0.05), v) for g, v in pairs]
        return optimizer.apply_gradients(clipped, tf.train.get_global_step())

    found = failure(check_replicas_agree, classifier(train=train), X, Y)
    assert "Gradients of one replica are clipped" in found
    assert "tf.clip_by_value(g, -0.05, 0.05)" in found
    assert "dense/kernel (" in found
    assert "tf.tpu.cross_replica_sum(g)" in found


@pytest.mark.parametrize("layer", ["batch_norm", "slim_batch_norm", "batch_norm_images"])
def test_batch_statistics_of_a_replica(layer):
    found = failure(check_replicas_agree, *SOUND[layer])
    assert "Batch normalization takes the statistics of a replica's share of the batch." in found
    assert "sound_models.py" in found
    assert "tf.tpu.cross_replica_sum" in found


def test_dropout_of_each_replica():
    found = failure(check_replicas_agree, *SOUND["dropout"])
    assert "Each replica draws random numbers of its own." in found
    assert "tf.layers.dropout(hidden, 0.2, training=training)" in found
    assert "by a key of params" in found


def test_mask_with_other_counts_on_each_replica():
    def loss_of(labels, logits, params):
        weights = tf.cast(labels > 0, tf.float32)
        return tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=weights)

    labels = np.array([0, 0, 0, 1, 2, 1, 2, 1], np.int32)
    found = failure(check_replicas_agree, classifier(loss_of=loss_of), X, labels)
    assert "No cause was recognised." in found
    assert "params['batch_size'], and not by the sum of weights or of a mask" in found


def test_loss_alone_differs():
    """The gradients are equal, what is reported is not."""

    def loss_of(labels, logits, params):
        mean = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return mean + tf.stop_gradient(tf.cast(params["context"].num_replicas, tf.float32))

    found = failure(check_replicas_agree, classifier(loss_of=loss_of), X, Y)
    assert "on one replica" in found
    assert "radients" not in found


@pytest.mark.parametrize(
    ("replicas", "error", "said"),
    [
        (1, ValueError, "got replicas=1"),
        (3, ValueError, "batch size 8 must be divisible by number of replicas 3"),
        (0, ValueError, "replicas must be positive, got 0"),
    ],
)
def test_bad_numbers_of_replicas(replicas, error, said):
    with pytest.raises(error, match=said):
        check_replicas_agree(classifier(train=train_wrapped), X, Y, replicas=replicas)


def test_more_replicas_than_this_process_has_logical_cpus():
    """They get a context of TensorFlow for themselves, and this process's stays as it was."""
    made = tf_v2.Variable(1.0)
    count = tf_v2.function(lambda: made.assign_add(1.0))
    count()
    devices = tf_v2.config.list_logical_devices()

    @tf_v2.function
    def doubled(x):
        return x + x

    doubled(tf_v2.constant(1.0))
    check_replicas_agree(classifier(lambda x, _: doubled(tf.layers.dense(x, 3))), X, Y, replicas=8)
    found = failure(check_replicas_agree, classifier(train=train_alone), X, Y, replicas=8)
    assert "No gradient is added up over 8 replicas" in found
    assert (tf_v2.config.list_logical_devices(), count()) == (devices, 3.0)
    assert doubled(made) == 6.0


def test_other_errors_of_model_fn_come_as_they_are():

    def train(loss):
        raise ValueError("of the model")

    with pytest.raises(ValueError, match="of the model"):
        check_replicas_agree(classifier(normalized, train=train), X, Y)
