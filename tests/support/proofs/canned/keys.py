"""Proofs of the keys of predictions and metrics."""

from support.proofs import proves

ROOTS = ("tensorflow_estimator.python.estimator", "tf.python.estimator")


def deep(names):
    return [f"{root}.{name}" for root in ROOTS for name in names.split()]


@proves(*deep("canned.prediction_keys"))
def has_prediction_keys(module):
    assert module.PredictionKeys.PROBABILITIES == "probabilities"


@proves(*deep("canned.metric_keys"))
def has_metric_keys(module):
    assert module.MetricKeys.LOSS_MEAN == "average_loss"
