import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from support.proofs import answers, evaluate
from tpu_estimator_compat.old_names.canned import contrib_heads as contrib
from tpu_estimator_compat.v1 import estimator as heads

X = np.array([[1.0], [-2.0]], np.float32)
LABELS = np.array([[0.0], [1.0]], np.float32)
NONE = np.zeros([2, 3], np.float32)
DEEP = "tensorflow_estimator.python.estimator"
CONTRIB = "tf.contrib.estimator"


def loss_of(head, labels=LABELS, logits=X):
    if isinstance(head, heads.Head):
        return float(head.loss(labels, logits, {}))
    return evaluate(lambda: head.create_loss({}, "train", logits, labels).training_loss)


LOSSES = {
    # The names of a head in both places, how it is called and fed, and the loss.
    "BinaryClassHead binary_classification_head": (
        lambda head: loss_of(head()),
        np.log1p(np.exp([1.0, 2.0])).mean(),
    ),
    "LogisticRegressionHead logistic_regression_head": (
        lambda head: loss_of(head()),
        np.log1p(np.exp([1.0, 2.0])).mean(),
    ),
    "RegressionHead regression_head": (lambda head: loss_of(head()), 5.0),  # the mean of 1 and 9
    "PoissonRegressionHead poisson_regression_head": (
        lambda head: loss_of(head(compute_full_loss=False)),
        np.mean([np.exp(1.0), np.exp(-2.0) + 2.0]),
    ),
    "MultiClassHead multi_class_head": (
        lambda head: loss_of(head(3), np.array([[2], [0]]), NONE),
        np.log(3.0),
    ),
    "MultiLabelHead multi_label_head": (
        lambda head: loss_of(head(3), np.array([[0, 1, 1], [0, 0, 0]]), NONE),
        np.log(2.0),
    ),
}


def of_two(head, part, **options):
    parts = [part(name="a"), part(name="b")]
    return loss_of(head(parts, **options), {"a": X, "b": X}, np.concatenate([X, X + 1.0], 1))


for names, (ask, loss) in LOSSES.items():
    of_2, of_1 = names.split()
    question = (ask, pytest.approx(loss, abs=1e-5))
    answers({f"tf.estimator.{of_2}": question, f"{CONTRIB}.{of_1}": question})

answers(
    {
        "tf.estimator.MultiHead": (lambda head: of_two(head, heads.RegressionHead), 1.0),
        f"{CONTRIB}.multi_head": (
            lambda head: of_two(head, contrib.regression_head, head_weights=[1.0, 0.5]),
            0.5,
        ),
        "tf.estimator.Head": (lambda head: issubclass(heads.RegressionHead, head), True),
        f"{DEEP}.head": (lambda module: loss_of(module.regression_head.RegressionHead()), 5.0),
        f"{DEEP}.head.head_utils": (
            lambda module: module.binary_or_multi_class_head(3, None, None, "sum").logits_dimension,
            3,
        ),
        f"{DEEP}.canned.head": (
            lambda m: loss_of(m._regression_head(loss_reduction=tf.losses.Reduction.MEAN)),
            5.0,
        ),
    }
)
