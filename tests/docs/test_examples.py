"""Examples: each public class has one in its docstring, and a doctest runs it."""

import doctest
import inspect

import pytest
import tensorflow as tf

import tpu_estimator_compat
from tpu_estimator_compat import embedding, estimator
from tpu_estimator_compat.estimator import experimental, export, tpu
from tpu_estimator_compat.keras_model.model import ModelFnModel

NAMESPACES = (tpu_estimator_compat, estimator, experimental, export, tpu, embedding)


def is_ours(value):
    """Whether a class is written here; tensorflow-estimator's own have no examples."""
    module = getattr(value, "__module__", "")
    ours = module.startswith("tpu_estimator_compat.") and ".original." not in module
    return inspect.isclass(value) and ours


PUBLIC = {name: getattr(n, name) for n in reversed(NAMESPACES) for name in n.__all__}
CLASSES = {
    f"{value.__module__}.{value.__name__}": value
    for namespace in NAMESPACES
    for value in (getattr(namespace, name) for name in namespace.__all__)
    if is_ours(value)
} | {"keras_model": ModelFnModel}


def model_fn(features, labels, mode, params):
    """Reaches w = 3 in one step of gradient descent, and stays there."""
    del features, labels, params
    w = tf.compat.v1.get_variable("w", [], initializer=tf.compat.v1.zeros_initializer())
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.5)
    optimizer = tpu.CrossShardOptimizer(optimizer)
    loss = tf.square(w - 3.0)
    train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params=None):
    del params
    return tf.data.Dataset.from_tensors([1.0]).repeat(64).batch(8, drop_remainder=True)


def receiver_fn():
    x = tf.compat.v1.placeholder(tf.float32, [None])
    return export.ServingInputReceiver({"x": x}, x)


GIVEN = {"tf": tf, "model_fn": model_fn, "input_fn": input_fn, "receiver_fn": receiver_fn}
GIVEN |= {"x": tf.constant([1.0, 2.0]), "y": tf.constant([0, 1])}


def test_an_example_is_found():
    assert CLASSES["tpu_estimator_compat.estimator.estimator.Estimator"] is estimator.Estimator


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cls = CLASSES[name]
    names = {**vars(inspect.getmodule(cls)), **PUBLIC, **GIVEN, cls.__name__: cls}
    found = doctest.DocTestParser().get_doctest(inspect.getdoc(cls), names, name, None, None)
    assert found.examples, f"{name} has no Example in its docstring"
    report = []
    result = doctest.DocTestRunner(verbose=False).run(found, out=report.append)
    assert not result.failed, "".join(report)
