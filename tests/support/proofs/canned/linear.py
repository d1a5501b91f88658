"""Proofs of the linear models."""

from support.proofs import proves
from support.proofs.canned.models import COLUMN, config, deep, trained
from tpu_estimator_compat.canned.contrib_heads import regression_head

CONTRIB = "tf.contrib.estimator"


@proves("tf.estimator.LinearClassifier", "tf.estimator.LinearRegressor")
@proves(*deep("linear:LinearRegressor"))
def trains_a_linear_model(model, tmp_path):
    trained(model([COLUMN], config=config(tmp_path), optimizer="Adagrad"))


@proves("tf.estimator.LinearEstimator", f"{CONTRIB}.LinearEstimator")
def trains_a_linear_model_below_a_head(model, tmp_path):
    trained(model(regression_head(), [COLUMN], config=config(tmp_path)))


@proves(*deep("linear:LinearRegressorV2"))
def trains_a_linear_model_of_2(model, tmp_path):
    of_2 = model([COLUMN], config=config(tmp_path))
    trained(of_2)
    assert "training/Ftrl/learning_rate" in of_2.get_variable_names()
