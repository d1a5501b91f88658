"""Proofs of heads: what `tf.estimator`, `tf.contrib.estimator` and their deep modules had."""

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import evaluate, proves
from tpu_estimator_compat.old_names.canned import contrib_heads as contrib
from tpu_estimator_compat.v1 import estimator as heads

X = np.array([[1.0], [-2.0]], np.float32)
LABELS = np.array([[0.0], [1.0]], np.float32)
SIGMOID_LOSS = np.log1p(np.exp([1.0, 2.0])).mean()
ROOTS = ("tensorflow_estimator.python.estimator", "tf.python.estimator")
CONTRIB = "tf.contrib.estimator"


def deep(names):
    return [f"{root}.{name}" for root in ROOTS for name in names.split()]


def loss_of(head, labels=LABELS, logits=X):
    if isinstance(head, heads.Head):
        return float(head.loss(labels, logits, {}))
    return evaluate(lambda: head.create_loss({}, "train", logits, labels).training_loss)


@proves("tf.estimator.BinaryClassHead", "tf.estimator.LogisticRegressionHead")
@proves(f"{CONTRIB}.binary_classification_head", f"{CONTRIB}.logistic_regression_head")
def makes_a_head_of_one_logit(make_head):
    assert abs(loss_of(make_head()) - SIGMOID_LOSS) < 1e-5


@proves("tf.estimator.RegressionHead", f"{CONTRIB}.regression_head")
def makes_a_head_of_numbers(make_head):
    assert loss_of(make_head()) == 5.0  # the mean of 1 and 9


@proves("tf.estimator.PoissonRegressionHead", f"{CONTRIB}.poisson_regression_head")
def makes_a_head_of_counts(make_head):
    expected = np.mean([np.exp(1.0), np.exp(-2.0) + 2.0])
    assert abs(loss_of(make_head(compute_full_loss=False)) - expected) < 1e-5


@proves("tf.estimator.MultiClassHead", f"{CONTRIB}.multi_class_head")
def makes_a_head_of_three_classes(make_head):
    loss = loss_of(make_head(3), np.array([[2], [0]]), np.zeros([2, 3], np.float32))
    assert abs(loss - np.log(3.0)) < 1e-5


@proves("tf.estimator.MultiLabelHead", f"{CONTRIB}.multi_label_head")
def makes_a_head_of_many_labels(make_head):
    loss = loss_of(make_head(3), np.array([[0, 1, 1], [0, 0, 0]]), np.zeros([2, 3], np.float32))
    assert abs(loss - np.log(2.0)) < 1e-5


@proves("tf.estimator.MultiHead")
def makes_a_head_of_heads(make_head):
    head = make_head([heads.RegressionHead(name="a"), heads.RegressionHead(name="b")])
    assert loss_of(head, {"a": X, "b": X}, np.concatenate([X, X + 1.0], 1)) == 1.0


@proves(f"{CONTRIB}.multi_head")
def makes_a_head_of_heads_of_v1(make_head):
    parts = [contrib.regression_head(name=name) for name in "ab"]
    head = make_head(parts, head_weights=[1.0, 0.5])
    assert loss_of(head, {"a": X, "b": X}, np.concatenate([X, X + 1.0], 1)) == 0.5


@proves("tf.estimator.Head", f"{CONTRIB}.Head", *deep("head.base_head"))
def is_the_base_of_heads(head):
    assert issubclass(heads.RegressionHead, getattr(head, "Head", head))


@proves(*deep("head head.binary_class_head"))
def has_the_head_of_two_classes(module):
    found = getattr(module, "binary_class_head", module)
    assert abs(loss_of(found.BinaryClassHead()) - SIGMOID_LOSS) < 1e-5


@proves(*deep("head.multi_class_head head.multi_label_head head.multi_head"))
def has_heads_of_several(module):
    names = ("MultiClassHead", "MultiLabelHead", "MultiHead")
    [name] = [name for name in names if hasattr(module, name)]
    assert getattr(module, name) is getattr(heads, name)


@proves(*deep("head.regression_head"))
def has_heads_of_numbers(module):
    assert loss_of(module.RegressionHead()) == 5.0


@proves(*deep("head.head_utils"))
def chooses_a_head(module):
    assert module.binary_or_multi_class_head(3, None, None, "sum").logits_dimension == 3


@proves(*deep("canned.head"))
def has_heads_of_v1(module):
    head = module._regression_head(loss_reduction=tf.losses.Reduction.MEAN)
    assert loss_of(head) == 5.0
