"""The head of two classes against NumPy."""

import numpy as np
from tensorflow.python.feature_column import feature_column

from tpu_estimator_compat.v1 import estimator as heads

X = np.linspace(-1.0, 1.0, 8, dtype=np.float32)[:, None]

ANSWERS = np.array([0, 1, 1, 0, 1, 0, 1, 1], np.int64)

WEIGHTS = np.array([1, 2, 0.5, 1, 1, 3, 1, 0.25], np.float32)


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
