"""`tf.contrib.learn.Estimator` and what goes with it; towers of `tf.contrib.estimator`."""

import numpy as np
import pandas
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as estimators
from tpu_estimator_compat.contrib import learn

from ..proofs import below, graph, proves

LEARN = "tf.contrib.learn"
INSIDE = f"{LEARN}.python.learn"
X = np.array([1.0, 2.0], np.float32)


def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = None if labels is None else tf.reduce_mean((features * weight - labels) ** 2)
    train_op = None
    if mode == "train":
        step = tf.train.get_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return learn.ModelFnOps(mode, features * weight, loss, train_op)


def input_fn():
    return tf.constant([[1.0]]), tf.constant([[2.0]])


def trained(estimator_class, folder):
    estimator = estimator_class(model_fn, str(folder))
    estimator.fit(input_fn=input_fn, steps=3)
    assert estimator.get_variable_value("weight") > 0.5
    return estimator


@proves(LEARN, INSIDE, f"{INSIDE}.estimators", f"{INSIDE}.estimators.estimator")
def has_estimators(module, tmp_path):
    estimator = trained(module.Estimator, tmp_path)
    assert isinstance(estimator, module.BaseEstimator)
    found = module.SKCompat(estimator).predict(np.array([[1.0], [2.0]], np.float32))
    assert found[1] == pytest.approx(2 * found[0])


@proves(f"{LEARN}.Estimator")
def trains(estimator_class, tmp_path):
    estimator = trained(estimator_class, tmp_path)
    results = estimator.evaluate(input_fn=input_fn, steps=1)
    assert results["global_step"] == 3
    assert results["loss"] > 0


@proves(*below(LEARN, "BaseEstimator Evaluable Trainable"))
def are_its_bases(base):
    assert issubclass(learn.Estimator, base)


@proves(f"{LEARN}.SKCompat")
def takes_arrays(wrapper, tmp_path):
    estimator = wrapper(learn.Estimator(model_fn, str(tmp_path)))
    estimator.fit(X, 2 * X[:, None, None], batch_size=2, steps=2)
    assert estimator.score(X, 2 * X[:, None, None], batch_size=1)["global_step"] == 2


@proves(f"{LEARN}.NotFittedError")
def is_raised(error, tmp_path):
    with pytest.raises(error, match="Couldn't find trained model"):
        learn.Estimator(model_fn, str(tmp_path)).predict(X)


@proves(f"{LEARN}.ModeKeys")
def has_modes(keys):
    assert (keys.TRAIN, keys.EVAL, keys.INFER) == ("train", "eval", "infer")
    assert keys.INFER == estimators.ModeKeys.PREDICT
    with pytest.raises(ValueError, match="Invalid mode"):
        keys.validate("other")


@proves(f"{LEARN}.ModelFnOps")
def has_ops(ops):
    with graph():
        made = ops(mode="infer", predictions={"y": tf.constant([1.0])})
        assert made.estimator_spec().mode == estimators.ModeKeys.PREDICT
        with pytest.raises(ValueError, match=r"Missing train_op\."):
            ops("train", loss=tf.constant(1.0))


@proves(f"{INSIDE}.estimators.model_fn")
def is_the_module_of_ops(module):
    assert module.ModelFnOps is learn.ModelFnOps
    assert module.ModeKeys.TRAIN == "train"


@proves(f"{LEARN}.MetricSpec")
def names_tensors(spec):
    made = spec(lambda labels, predictions: labels - predictions, prediction_key="p")
    assert made.create_metric_ops({}, 3, {"p": 1, "q": 2}) == 2


@proves(f"{INSIDE}.metric_spec")
def is_the_module_of_specs(module):
    assert module.MetricSpec is learn.MetricSpec


@proves(f"{LEARN}.PredictionKey")
def names_predictions(keys):
    assert keys.CLASSES == "classes"


@proves(f"{LEARN}.ProblemType")
def names_problems(problems):
    assert problems.LINEAR_REGRESSION == 2


@proves(*below(f"{INSIDE}.estimators", "constants prediction_key metric_key"))
def has_names(module):
    assert module.MetricKey.ACCURACY == "accuracy"
    assert module.ProblemType.UNSPECIFIED == 0


@proves(f"{LEARN}.InputFnOps")
def has_inputs(ops):
    assert ops(1, None, 2).default_inputs == 2


@proves(f"{LEARN}.build_parsing_serving_input_fn")
def parses(build):
    with graph():
        ops = build({"x": tf.FixedLenFeature([], tf.float32)})()
        assert ops.features["x"].dtype == tf.float32
        assert list(ops.default_inputs) == ["examples"]


@proves(f"{INSIDE}.utils.input_fn_utils", f"{LEARN}.utils.input_fn_utils")
def receives(module):
    with graph():
        ops = module.build_default_serving_input_fn({"x": tf.constant([[1.0]])})()
        assert ops.features["x"].shape.as_list() == [None, 1]


@proves(f"{LEARN}.io", *below(INSIDE, "learn_io learn_io.numpy_io learn_io.pandas_io"))
def reads(module):
    with graph(), tf.Session() as session:
        batch = module.numpy_input_fn({"x": X}, batch_size=2)()
        session.run(tf.tables_initializer())
        assert sorted(session.run(batch)["x"]) == [1.0, 2.0]


@proves(*below(LEARN, "extract_pandas_data extract_pandas_labels extract_pandas_matrix"))
def extracts(extract):
    assert extract(pandas.DataFrame({"a": [1, 2]})).tolist() == [[1], [2]]
    assert extract([3]) == [3]


def tower_model_fn(optimizer):
    def model_fn(features, labels, mode):
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean((features * weight - labels) ** 2)
        train_op = optimizer().minimize(loss, tf.train.get_global_step())
        return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


@proves("tf.contrib.estimator.replicate_model_fn")
def replicates(replicate, tmp_path):
    model_fn = replicate(tower_model_fn(lambda: tf.train.GradientDescentOptimizer(0.1)))
    estimators.Estimator(model_fn, str(tmp_path)).train(input_fn, steps=1)


@proves("tf.contrib.estimator.python.estimator.replicate_model_fn")
def has_towers(module, tmp_path):
    replicates(module.replicate_model_fn, tmp_path)
    assert issubclass(module.TowerOptimizer, tf.train.Optimizer)


@proves("tf.contrib.estimator.TowerOptimizer")
def wraps(optimizer, tmp_path):
    made = tower_model_fn(lambda: optimizer(tf.train.GradientDescentOptimizer(0.1)))
    estimator = estimators.Estimator(made, str(tmp_path))
    estimator.train(input_fn, steps=1)
    assert estimator.get_variable_value("weight") == pytest.approx(0.4)
