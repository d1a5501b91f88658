import re

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from tpu_estimator_compat.old_names.canned.wheel.canned import linear

from support.proofs import answers, below, evaluate, proves
from tpu_estimator_compat.estimator import RunConfig
from tpu_estimator_compat.old_names.canned.contrib_heads import regression_head

CANNED = "tensorflow_estimator.python.estimator.canned"
X = np.array([1.0, 2.0, 4.0], np.float32)
COLUMN = tf2.feature_column.numeric_column("x")
ARGUMENTS = {
    "Baseline": {},
    "Linear": {"feature_columns": [COLUMN]},
    "DNN": {"hidden_units": [4], "feature_columns": [COLUMN]},
    "DNNLinearCombined": {
        "linear_feature_columns": [COLUMN],
        "dnn_feature_columns": [COLUMN],
        "dnn_hidden_units": [4],
    },
}
KINDS = ("Classifier", "Regressor", "Estimator")
MODELS = " ".join(f"{name}{kind}" for name in ARGUMENTS for kind in KINDS)
OF_2 = (
    "baseline:BaselineRegressorV2 linear:LinearRegressorV2 dnn:DNNRegressorV2 "
    "dnn_linear_combined:DNNLinearCombinedRegressorV2"
)


def config(folder):
    return RunConfig(str(folder), tf_random_seed=1)


def input_fn():
    labels = np.array([[1.0], [0.0], [0.0]], np.float32)
    return tf2.data.Dataset.from_tensors(({"x": X}, labels)).repeat()


@proves(*below("tf.estimator", MODELS), *below(CANNED, OF_2))
def lowers_the_loss(model, tmp_path):
    name, kind = re.match(f"(.*)({'|'.join(KINDS)})", model.__name__).groups()
    head = {"head": regression_head()} if kind == "Estimator" else {}
    estimator = model(config=config(tmp_path), **ARGUMENTS[name], **head)
    before = estimator.evaluate(input_fn, steps=1)["loss"]
    estimator.train(input_fn, steps=5)
    assert estimator.evaluate(input_fn, steps=1)["loss"] < before


@proves("tf.estimator.experimental.LinearSDCA")
def trains_by_dual_coordinates(optimizer, tmp_path):
    """Each example has a dual variable, found again under its id."""
    features = {"x": np.array([1.0, 2.0], np.float32), "id": np.array(["a", "b"])}
    labels = np.array([[1.0], [3.0]], np.float32)

    def data_with_ids():
        return tf2.data.Dataset.from_tensors((features, labels)).repeat()

    by_id = optimizer("id", symmetric_l2_regularization=0.1)
    model = linear.LinearRegressorV2([COLUMN], config=config(tmp_path), optimizer=by_id)
    model.train(data_with_ids, steps=20)
    assert model.evaluate(data_with_ids, steps=1)["loss"] < 0.5
    values = model.get_variable_value("ShardedMutableHashTable-1-of-1-values")
    assert np.count_nonzero(values.any(axis=1)) == 2


@proves("tf.estimator.experimental.KMeans")
def finds_clusters(model_class, tmp_path):
    points = np.array([[0.0, 0.0], [10.0, 10.0], [0.0, 1.0], [10.0, 11.0]], np.float32)
    model = model_class(
        2, initial_clusters=points[:2], use_mini_batch=False, config=config(tmp_path)
    )
    model.train(lambda: tf2.data.Dataset.from_tensors(points))
    np.testing.assert_allclose(model.cluster_centers(), [[0.0, 0.5], [10.0, 10.5]], atol=1e-5)


@proves("tf.estimator.experimental.linear_logit_fn_builder")
def builds_linear_logits(builder):
    logit_fn = builder(3, [COLUMN])
    assert evaluate(lambda: logit_fn({"x": tf.constant(X)})).tolist() == [[0.0] * 3] * 3


@proves("tf.estimator.experimental.dnn_logit_fn_builder")
def builds_deep_logits(builder):
    logit_fn = builder(2, [4], [COLUMN], tf.nn.relu, None, None, False)
    assert evaluate(lambda: logit_fn({"x": tf.constant(X)}, "train")).shape == (3, 2)


@proves("tf.estimator.experimental.call_logit_fn")
def calls_a_logit_fn(call_logit_fn):
    def logit_fn(features, mode):
        return features + len(mode)

    assert evaluate(lambda: call_logit_fn(logit_fn, tf.constant(1), "eval", {}, None)) == 5


@proves(f"{CANNED}.optimizers")
def has_optimizers(module):
    adagrad = module.get_optimizer_instance("Adagrad", learning_rate=0.5)
    assert isinstance(adagrad, tf.train.AdagradOptimizer)
    assert adagrad._learning_rate == 0.5
    assert module.get_optimizer_instance_v2("SGD").get_config()["learning_rate"] == 0.01


def types_of(spec):
    return {name: (feature.dtype, feature.shape) for name, feature in spec.items()}


answers(
    {
        "tf.estimator.classifier_parse_example_spec": (
            lambda make: types_of(make([COLUMN], "y", weight_column="w")),
            {"x": (tf.float32, (1,)), "y": (tf.int64, (1,)), "w": (tf.float32, (1,))},
        ),
        "tf.estimator.regressor_parse_example_spec": (
            lambda make: types_of(make([COLUMN], "y", label_dimension=3)),
            {"x": (tf.float32, (1,)), "y": (tf.float32, (3,))},
        ),
        f"{CANNED}.prediction_keys": (lambda m: m.PredictionKeys.PROBABILITIES, "probabilities"),
        f"{CANNED}.metric_keys": (lambda module: module.MetricKeys.LOSS_MEAN, "average_loss"),
    }
)
