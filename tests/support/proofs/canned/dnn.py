"""Proofs of the deep models."""

from support.proofs import proves
from support.proofs.canned.models import COLUMN, config, deep, trained
from tpu_estimator_compat.old_names.canned.contrib_heads import regression_head


@proves("tf.estimator.DNNClassifier", "tf.estimator.DNNRegressor")
@proves(deep("dnn:DNNRegressorV2"))
def trains_a_deep_model(model, tmp_path):
    trained(model([4], [COLUMN], config=config(tmp_path)))


@proves("tf.estimator.DNNEstimator")
def trains_a_deep_model_below_a_head(model, tmp_path):
    trained(model(regression_head(), [4], [COLUMN], config=config(tmp_path)))
