"""Proofs of the wide and deep models."""

from support.proofs import proves
from support.proofs.canned.models import COLUMN, config, deep, trained
from tpu_estimator_compat.old_names.canned.contrib_heads import regression_head


@proves("tf.estimator.DNNLinearCombinedClassifier", "tf.estimator.DNNLinearCombinedRegressor")
@proves(deep("dnn_linear_combined:DNNLinearCombinedRegressorV2"))
def trains_a_wide_and_deep_model(model, tmp_path):
    columns = {"linear_feature_columns": [COLUMN], "dnn_feature_columns": [COLUMN]}
    trained(model(config=config(tmp_path), dnn_hidden_units=[4], **columns))


@proves("tf.estimator.DNNLinearCombinedEstimator")
def trains_a_wide_and_deep_model_below_a_head(model, tmp_path):
    head = regression_head()
    trained(model(head, linear_feature_columns=[COLUMN], config=config(tmp_path)))
