"""Copies of the original's `tpu_estimator.py`: known by what they define; ours replaces them."""

import pytest

from tpu_estimator_compat.old_names.legacy import vendored

COPY = """
import tensorflow as tf
from tensorflow.contrib.tpu.python.tpu import tpu_config
from tensorflow.python.estimator import estimator as estimator_lib
from tensorflow.python.framework import ops
from tensorflow.python.ops import resource_variable_ops

_BATCH_SIZE_KEY = "batch_size"
ops.register_proto_function("x", to_proto=resource_variable_ops._to_proto_fn)


class TPUEstimatorSpec(tuple):
    def __new__(cls, mode, predictions=None, loss=None, train_op=None, cache=None):
        raise AssertionError


class TPUInfeedOutfeedSessionHook: pass
class _Inputs: pass
class _InputPipeline: pass
class _ModelFnWrapper: pass
class _OutfeedHostCall: pass


class TPUEstimator(estimator_lib.Estimator):
    def __init__(self, model_fn=None, cache_fn=None, model_dir=None, config=None, params=None,
                 use_tpu=True, train_batch_size=None, warm_start_from=None, *, fast=False):
        raise AssertionError

    def train_twice(self): pass


def owners_function(): pass
"""
SCRIPT = """
import tensorflow as tf
import my_estimator
from my_estimator import TPUEstimator


def model_fn(features, labels, mode, params):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.square(w - 2.0 * tf.reduce_mean(features))
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.25).minimize(loss, step)
    return my_estimator.TPUEstimatorSpec(mode, None, loss, train_op)


def input_fn(params):
    return tf.data.Dataset.from_tensors(tf.ones([params[my_estimator._BATCH_SIZE_KEY]])).repeat()


config = my_estimator.tpu_config.RunConfig()
estimator = TPUEstimator(model_fn, CACHE, "model", config, {}, False, 4, None, fast=False)
estimator.train(input_fn, steps=2)
print(estimator.get_variable_value("w"), estimator.model_dir)
print(my_estimator.TPUInfeedOutfeedSessionHook)
MORE
"""
TOLD = (
    "my_estimator.py is a copy of TensorFlow's tpu_estimator.py. tpu_estimator_compat's "
    "TPUEstimator replaces it: changes that the copy's owner made have no effect. Names of the "
    "copy that tpu_estimator_compat does not have: owners_function, "
    "TPUEstimator.train_twice, argument cache_fn of TPUEstimator, argument fast of TPUEstimator, "
    "argument cache of TPUEstimatorSpec."
)


def script(cache="None", more=""):
    return SCRIPT.replace("CACHE", cache).replace("MORE", more)


def test_known_by_what_it_defines():
    assert vendored.copy_of_original(COPY.encode())


@pytest.mark.parametrize(
    "source",
    [
        "from tensorflow.contrib import tpu\nclass TPUEstimator(tpu.TPUEstimator): pass\n",
        COPY.replace("class TPUEstimator(", "class Another("),
        COPY.replace("class _Inputs:", "class _Others:"),
        "TEXT = '''class TPUEstimator('''\n",
        "",
    ],
)
def test_others_are_run_as_they_are(source):
    assert vendored.copy_of_original(source.encode()) is None


def test_ours_replaces_a_copy_and_logs_the_missing_names(run, tmp_path):
    (tmp_path / "my_estimator.py").write_text(COPY)
    done = run(script())
    assert done.stdout == (
        "1.5 model\n<tf.python.tpu.tpu_estimator.TPUInfeedOutfeedSessionHook: not provided>\n"
    ), done.stderr
    assert done.stderr.count(TOLD) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cache", "more", "error"),
    [
        ("input_fn", "", "NotImplementedError: TPUEstimator(cache_fn=...): the owner of"),
        ("None", "my_estimator.owners_function()", "and has no owners_function"),
        ("None", "from my_estimator import owners_function", "and has no owners_function"),
        ("None", "TPUEstimator(*[None] * 9)", "takes 8 arguments, got 9"),
        ("None", "TPUEstimator(model_fn, model_fn=1)", "got several values for model_fn"),
        ("None", "TPUEstimator(model_fn, fast=True)", "TPUEstimator(fast=...): the owner of"),
        ("None", "my_estimator.TPUEstimatorSpec('train', cache=[])", "TPUEstimatorSpec(cache=...)"),
        ("None", "my_estimator.no_such", "no_such is not in TensorFlow"),
    ],
)
def test_what_ours_lacks_is_refused_where_it_is_used(run, tmp_path, cache, more, error):
    (tmp_path / "my_estimator.py").write_text(COPY)
    done = run(script(cache, more))
    assert done.returncode == 1
    assert error in done.stderr, done.stderr
    assert "vendored.py" not in done.stderr
