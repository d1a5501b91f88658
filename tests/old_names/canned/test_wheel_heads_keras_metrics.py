"""Metrics of heads."""

from tpu_estimator_compat.v1 import estimator as heads


def test_no_labels_have_a_baseline_of_zero():
    metrics = heads.BinaryClassHead().metrics()
    assert float(metrics["accuracy_baseline"].result()) == 0.0
