"""Proofs of the keys of predictions and metrics."""

from support.proofs import answers

CANNED = "tensorflow_estimator.python.estimator.canned"

answers(
    {
        f"{CANNED}.prediction_keys": (lambda m: m.PredictionKeys.PROBABILITIES, "probabilities"),
        f"{CANNED}.metric_keys": (lambda module: module.MetricKeys.LOSS_MEAN, "average_loss"),
    },
)
