"""`tf.contrib.learn.MetricSpec`."""

import pytest
from support.proofs.contrib.learn import metric_spec as proofs
from support.proofs.proving import each_proof_of

from tpu_estimator_compat.old_names.contrib import learn

test_served_names = each_proof_of(proofs)


def test_metrics_take_what_they_name():
    spec = learn.MetricSpec(lambda target, prediction, weight: (target, prediction, weight))
    assert spec.metric_fn(labels=1, predictions=2, weights=3) == (1, 2, 3)
    assert learn.MetricSpec(lambda values: values).metric_fn(labels=1, predictions=2) == 2
    keyed = learn.MetricSpec(lambda labels, x: (labels, x), prediction_key="p")
    assert keyed.create_metric_ops({}, 1, {"p": 2, "q": 3}) == (1, 2)
    assert "prediction_key=p, label_key=None" in str(keyed)
    with pytest.raises(ValueError, match="requires labels tensor or single element dict"):
        keyed.create_metric_ops({}, {"a": 1, "b": 2}, {"p": 2})
    with pytest.raises(ValueError, match="Ambiguous arguments"):
        learn.MetricSpec(lambda labels, target: 0)
    with pytest.raises(ValueError, match="missing from"):
        learn.MetricSpec(lambda labels, predictions: 0, weight_key="w")
