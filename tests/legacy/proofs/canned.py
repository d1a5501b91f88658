"""Canned models, what they are made of, and their deep modules."""

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.canned.heads.contrib import regression_head
from tpu_estimator_compat.estimator import RunConfig

from ..proofs import evaluate, proves

ROOTS = ("tensorflow_estimator.python.estimator", "tf.python.estimator")
CONTRIB = "tf.contrib.estimator"
EXPERIMENTAL = "tf.estimator.experimental"

X = np.array([1.0, 2.0], np.float32)
COLUMN = tf2.feature_column.numeric_column("x")


def deep(name):
    return [f"{root}.canned.{name}" for root in ROOTS]


def input_fn():
    return tf2.data.Dataset.from_tensors(({"x": X}, np.array([[1.0], [0.0]], np.float32))).repeat()


def trained(estimator):
    """Its training lowers the loss."""
    before = estimator.evaluate(input_fn, steps=1)["loss"]
    estimator.train(input_fn, steps=5)
    assert estimator.evaluate(input_fn, steps=1)["loss"] < before


def config(folder):
    return RunConfig(str(folder), tf_random_seed=1)


@proves("tf.estimator.LinearClassifier", "tf.estimator.LinearRegressor")
def trains_a_linear_model(model, tmp_path):
    trained(model([COLUMN], config=config(tmp_path), optimizer="Adagrad"))


@proves("tf.estimator.DNNClassifier", "tf.estimator.DNNRegressor")
def trains_a_deep_model(model, tmp_path):
    trained(model([4], [COLUMN], config=config(tmp_path)))


@proves("tf.estimator.DNNLinearCombinedClassifier", "tf.estimator.DNNLinearCombinedRegressor")
def trains_a_wide_and_deep_model(model, tmp_path):
    columns = {"linear_feature_columns": [COLUMN], "dnn_feature_columns": [COLUMN]}
    trained(model(config=config(tmp_path), dnn_hidden_units=[4], **columns))


@proves("tf.estimator.BaselineRegressor", "tf.estimator.BaselineClassifier")
def trains_a_baseline(model, tmp_path):
    estimator = model(config=config(tmp_path))
    estimator.train(input_fn, steps=3)
    assert estimator.get_variable_names()[0] == "baseline/bias"


@proves("tf.estimator.LinearEstimator", f"{CONTRIB}.LinearEstimator")
def trains_a_linear_model_below_a_head(model, tmp_path):
    trained(model(regression_head(), [COLUMN], config=config(tmp_path)))


@proves("tf.estimator.DNNEstimator", f"{CONTRIB}.DNNEstimator")
def trains_a_deep_model_below_a_head(model, tmp_path):
    trained(model(regression_head(), [4], [COLUMN], config=config(tmp_path)))


@proves("tf.estimator.DNNLinearCombinedEstimator", f"{CONTRIB}.DNNLinearCombinedEstimator")
def trains_a_wide_and_deep_model_below_a_head(model, tmp_path):
    head = regression_head()
    trained(model(head, linear_feature_columns=[COLUMN], config=config(tmp_path)))


@proves("tf.estimator.BaselineEstimator", f"{CONTRIB}.BaselineEstimator")
def trains_a_baseline_below_a_head(model, tmp_path):
    trained(model(regression_head(), config=config(tmp_path)))


@proves(*deep("linear"))
def has_linear_models(module, tmp_path):
    trains_a_linear_model(module.LinearRegressor, tmp_path / "1")
    of_2 = module.LinearRegressorV2([COLUMN], config=config(tmp_path / "2"))
    trained(of_2)
    assert "training/Ftrl/learning_rate" in of_2.get_variable_names()


@proves(*deep("dnn"))
def has_deep_models(module, tmp_path):
    trains_a_deep_model(module.DNNRegressor, tmp_path / "1")
    trains_a_deep_model(module.DNNRegressorV2, tmp_path / "2")


@proves(*deep("dnn_linear_combined"))
def has_wide_and_deep_models(module, tmp_path):
    trains_a_wide_and_deep_model(module.DNNLinearCombinedRegressor, tmp_path / "1")
    trains_a_wide_and_deep_model(module.DNNLinearCombinedRegressorV2, tmp_path / "2")


@proves(*deep("baseline"))
def has_baselines(module, tmp_path):
    trains_a_baseline(module.BaselineRegressor, tmp_path / "1")
    trains_a_baseline(module.BaselineRegressorV2, tmp_path / "2")


@proves(*deep("optimizers"))
def has_optimizers(module):
    adagrad = module.get_optimizer_instance("Adagrad", learning_rate=0.5)
    assert isinstance(adagrad, tf.train.AdagradOptimizer)
    assert adagrad._learning_rate == 0.5
    assert module.get_optimizer_instance_v2("SGD").get_config()["learning_rate"] == 0.01


@proves(*deep("parsing_utils"))
def has_parsing_specs(module):
    classifier_parses(module.classifier_parse_example_spec)
    regressor_parses(module.regressor_parse_example_spec_v2)


@proves("tf.estimator.classifier_parse_example_spec")
def classifier_parses(parse_example_spec):
    spec = parse_example_spec([COLUMN], "y", weight_column="w")
    assert {key: feature.dtype for key, feature in spec.items()} == {
        "x": tf.float32,
        "y": tf.int64,
        "w": tf.float32,
    }


@proves("tf.estimator.regressor_parse_example_spec")
def regressor_parses(parse_example_spec):
    spec = parse_example_spec([COLUMN], "y", label_dimension=3)
    assert (spec["y"].dtype, spec["y"].shape) == (tf.float32, (3,))


@proves(f"{EXPERIMENTAL}.linear_logit_fn_builder", f"{CONTRIB}.linear_logit_fn_builder")
def builds_linear_logits(builder):
    logit_fn = builder(3, [COLUMN])
    assert evaluate(lambda: logit_fn({"x": tf.constant(X)})).tolist() == [[0.0] * 3] * 2


@proves(f"{EXPERIMENTAL}.dnn_logit_fn_builder", f"{CONTRIB}.dnn_logit_fn_builder")
def builds_deep_logits(builder):
    logit_fn = builder(3, [4], [COLUMN], tf.nn.relu, None, None, False)
    assert evaluate(lambda: logit_fn({"x": tf.constant(X)}, "train")).shape == (2, 3)


@proves(f"{EXPERIMENTAL}.call_logit_fn", f"{CONTRIB}.call_logit_fn")
def calls_a_logit_fn(call_logit_fn):
    def logit_fn(features, mode):
        return features + len(mode)

    found = evaluate(lambda: call_logit_fn(logit_fn, tf.constant(1), "eval", {}, None))
    assert found == 5
