"""Proofs of the baselines."""

from support.proofs import proves
from support.proofs.canned.models import config, deep, input_fn, trained
from tpu_estimator_compat.old_names.canned.contrib_heads import regression_head


@proves("tf.estimator.BaselineRegressor", "tf.estimator.BaselineClassifier")
@proves(deep("baseline:BaselineRegressorV2"))
def trains_a_baseline(model, tmp_path):
    estimator = model(config=config(tmp_path))
    estimator.train(input_fn, steps=3)
    assert estimator.get_variable_names()[0] == "baseline/bias"


@proves("tf.estimator.BaselineEstimator")
def trains_a_baseline_below_a_head(model, tmp_path):
    trained(model(regression_head(), config=config(tmp_path)))
