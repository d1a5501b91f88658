"""Proofs of `tf.contrib.learn.Estimator`, and its bases and wrappers."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from support.proofs import below, proves
from tpu_estimator_compat.old_names.contrib import learn

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


CONTRIB = "tf.contrib"


@proves(f"{CONTRIB}.learn.NanLossDuringTrainingError")
def has_the_error(error):
    assert "NaN loss during training" in str(error())
