"""Heads: served names, and what a model_fn of a TPUEstimator returns of them.

What they do in an `Estimator` is judged by the original, in `tests/conformance`.
"""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.feature_column import feature_column
from tpu_estimator_compat.old_names.canned.wheel.canned import head as v1

import tpu_estimator_compat.tpu as tpu
from tpu_estimator_compat.old_names.canned import contrib_heads as contrib
from tpu_estimator_compat.v1 import estimator as heads

X = np.linspace(-1.0, 1.0, 8, dtype=np.float32)[:, None]

ANSWERS = np.array([0, 1, 1, 0, 1, 0, 1, 1], np.int64)

WEIGHTS = np.array([1, 2, 0.5, 1, 1, 3, 1, 0.25], np.float32)


def model_fn_of(make_head):
    def model_fn(features, labels, mode, params):
        head = make_head()
        size = head.logits_dimension
        weights = tf.compat.v1.get_variable(
            "w", [1, size], initializer=tf.compat.v1.constant_initializer(0.5)
        )

        def train_op_fn(loss):
            optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.5)
            if params["use_tpu"]:
                optimizer = tpu.CrossShardOptimizer(optimizer)
            return optimizer.minimize(loss, tf.compat.v1.train.get_global_step())

        spec = head._create_tpu_estimator_spec(
            features=features,
            mode=mode,
            logits=tf.matmul(features["x"], weights),
            labels=labels,
            train_op_fn=train_op_fn,
        )
        return spec if mode != "infer" else spec._replace(export_outputs=None)

    return model_fn


def input_fn(params):
    features = {"x": X, "weight": WEIGHTS[:, None]}
    data = tf.data.Dataset.from_tensor_slices((features, ANSWERS[:, None]))
    return data.batch(params["batch_size"], drop_remainder=True).repeat()


@pytest.mark.parametrize(
    "make_head",
    [
        lambda: contrib.binary_classification_head("weight"),
        lambda: heads.BinaryClassHead("weight"),
        lambda: contrib.multi_class_head(3),
    ],
)
def test_trains_and_evaluates_on_replicas(make_head, strategy, tmp_path):
    """The same weights and metrics as without a TPU."""
    found = []
    for use_tpu in False, True:
        config = tpu.RunConfig(
            model_dir=str(tmp_path / str(use_tpu)),
            tpu_config=tpu.TPUConfig(iterations_per_loop=2),
            **(
                {"train_distribute": strategy(2), "eval_distribute": strategy(2)} if use_tpu else {}
            ),
        )
        estimator = tpu.TPUEstimator(
            model_fn_of(make_head),
            use_tpu=use_tpu,
            config=config,
            train_batch_size=8,
            eval_batch_size=8,
        )
        estimator.train(input_fn, steps=4)
        metrics = estimator.evaluate(input_fn, steps=2)
        found.append((estimator.get_variable_value("w"), metrics))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    assert found[0][1].keys() == found[1][1].keys()
    for key, value in found[0][1].items():
        np.testing.assert_allclose(found[1][1][key], value, rtol=1e-5, err_msg=key)


def sigmoid_losses(logits, labels):
    probabilities = 1 / (1 + np.exp(-logits))
    return -labels * np.log(probabilities) - (1 - labels) * np.log(1 - probabilities)


def test_weighted_losses_and_metrics_of_two_classes():
    head = heads.BinaryClassHead("weight", thresholds=[0.6])
    features, logits = {"weight": WEIGHTS}, 2 * X + 0.25
    losses = sigmoid_losses(logits[:, 0], ANSWERS) * WEIGHTS
    loss = head.loss(ANSWERS, logits, features)
    np.testing.assert_allclose(loss, losses.sum() / 8, rtol=1e-6)
    metrics = head.update_metrics(head.metrics(), features, logits, ANSWERS)
    found = {key: float(metric.result()) for key, metric in metrics.items()}
    chosen = (logits[:, 0] > 0) == ANSWERS
    total = WEIGHTS.sum()
    share = (WEIGHTS * ANSWERS).sum() / total
    above = 1 / (1 + np.exp(-logits[:, 0])) > 0.6
    np.testing.assert_allclose(found["average_loss"], losses.sum() / total, rtol=1e-6)
    np.testing.assert_allclose(found["accuracy"], (chosen * WEIGHTS).sum() / total, rtol=1e-6)
    np.testing.assert_allclose(found["label/mean"], share, rtol=1e-6)
    np.testing.assert_allclose(found["accuracy_baseline"], max(share, 1 - share), rtol=1e-6)
    np.testing.assert_allclose(
        found["precision/positive_threshold_0.6"],
        (WEIGHTS * ANSWERS * above).sum() / (WEIGHTS * above).sum(),
        rtol=1e-6,
    )


def test_weights_of_a_column_of_tensorflow_1():
    column = feature_column._numeric_column("weight")
    features, logits = {"weight": WEIGHTS[:, None]}, 2 * X
    loss = heads.BinaryClassHead(column).loss(ANSWERS, logits, features)
    assert loss == heads.BinaryClassHead("weight").loss(ANSWERS, logits, features)


def test_several_heads_are_a_weighted_sum_of_them():
    first, second = heads.BinaryClassHead(name="a"), heads.RegressionHead(name="b")
    both = heads.MultiHead([first, second], [1.0, 0.5])
    logits = np.concatenate([2 * X, X + 1], axis=1)
    labels = {"a": ANSWERS, "b": X}
    regularization = [tf.constant(0.25)]
    loss = both.loss(labels, logits, {}, regularization_losses=regularization)
    own = first.loss(ANSWERS, logits[:, :1], {}), second.loss(X, logits[:, 1:], {})
    apart = own[0] + 0.5 * own[1]
    np.testing.assert_allclose(loss, apart + 0.25, rtol=1e-6)
    assert both.name == "a_b"
    assert both.logits_dimension == 2


def test_no_labels_have_a_baseline_of_zero():
    metrics = heads.BinaryClassHead().metrics()
    assert float(metrics["accuracy_baseline"].result()) == 0.0


def test_a_head_of_ones_own_says_what_it_lacks():
    class Bare(v1._Head):
        name, logits_dimension = None, 1

        def create_loss(self, features, mode, logits, labels):
            return None

    with pytest.raises(NotImplementedError, match="must implement `create_estimator_spec"):
        Bare().create_estimator_spec({}, "train", X)


@pytest.mark.parametrize(
    ("make_head", "words"),
    [
        (lambda: heads.BinaryClassHead(thresholds=[0.5, 1.0]), "thresholds not in (0, 1)"),
        (lambda: heads.BinaryClassHead(loss_reduction="none"), "Invalid loss_reduction: none"),
        (lambda: heads.MultiClassHead(2), "n_classes must be > 2: 2"),
        (lambda: heads.MultiLabelHead(1), "n_classes must be > 1 for multi-label"),
        (lambda: heads.RegressionHead(0), "Invalid label_dimension 0"),
        (lambda: heads.MultiHead([heads.RegressionHead()]), "must have name specified"),
        (lambda: contrib.multi_head([]), "Must specify heads"),
        (lambda: v1._regression_head(loss_fn=len), "loss_fn must contain argument: labels"),
    ],
)
def test_wrong_arguments_are_named(make_head, words):
    with pytest.raises(ValueError) as error:
        make_head()
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("labels", "logits", "words"),
    [
        (None, X, "You must provide a labels Tensor. Given: None."),
        (np.ones([8, 2]), X, "Mismatched label shape. Expected labels dimension=1.  Received 2"),
        (np.ones([7, 1]), X, "labels shape must be [D0, D1, ... DN, 1]"),
        (np.ones([8, 1]), np.ones([8, 2]), "logits_dimension], got (8, 2)"),
        (2 * np.ones([8, 1]), X, "Labels must be <= 2 - 1"),
    ],
)
def test_wrong_labels_are_named(labels, logits, words):
    with pytest.raises(ValueError) as error:
        heads.BinaryClassHead().loss(labels, logits, {})
    assert words in str(error.value)


def test_shapes_that_only_the_step_knows_are_checked_there():
    head = heads.RegressionHead()

    @tf.function(
        input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None, None])], autograph=False
    )
    def loss(labels, logits):
        return head.loss(labels, logits, {})

    assert float(loss(X, X)) == 0.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels shape must be"):
        loss(X[:5], X)
    with pytest.raises(tf.errors.InvalidArgumentError, match="logits shape must be"):
        loss(np.ones([8, 2], np.float32), np.ones([8, 2], np.float32))
