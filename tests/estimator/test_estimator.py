import subprocess
import sys

import numpy as np
import pandas
import pytest
from support.legacy_models import make_estimator, train_input_fn

import tpu_estimator_compat as tpu
import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.estimator import EvalSpec, TrainSpec

from .remembering import Exporter


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ([1], None, TypeError, "x must be a dict or array; got list"),
        ({}, None, ValueError, "x cannot be an empty dict"),
        (np.array([]), None, ValueError, "x cannot be an empty array"),
        (np.ones(2), {}, ValueError, "y cannot be empty dict"),
        ({"a": np.ones(2)}, {"a": np.ones(2)}, ValueError, "1 duplicate keys"),
        ({"a": np.ones(2)}, np.ones(3), ValueError, "Length of tensors in x and y is mismatched"),
    ],
)
def test_arrays(x, y, error, message):
    input_fn = tf.estimator.inputs.numpy_input_fn(x, y, shuffle=False)
    with pytest.raises(error, match=message):
        input_fn()


def test_frames():
    frame, other = pandas.DataFrame({"a": [1]}), pandas.Series([1], index=[5])
    make = tf.estimator.inputs.pandas_input_fn
    with pytest.raises(ValueError, match="shuffle must be provided"):
        make(frame)
    with pytest.raises(ValueError, match="Index for x and y are mismatched"):
        make(frame, other, shuffle=False)
    with pytest.raises(ValueError, match="Cannot use name a for target column"):
        make(frame, frame["a"], shuffle=False, target_column="a")
    with pytest.raises(TypeError, match="target_column must be a string"):
        make(frame, frame["a"], shuffle=False, target_column=1)


def test_the_feed_hook_is_said_to_have_no_effect(tmp_path, caplog):
    make_estimator(tmp_path, tpu_config=tpu.TPUConfig(experimental_feed_hook=object))
    assert "experimental_feed_hook=<class 'object'> has no effect" in caplog.text


def test_listeners_of_another_type_are_refused():
    message = "All saving_listeners must be `CheckpointSaverListener` instances, given: 3"
    with pytest.raises(TypeError, match=message):
        TrainSpec(train_input_fn, saving_listeners=[3])


def test_an_exporter_whose_name_is_no_string_is_refused():
    with pytest.raises(ValueError, match="An Exporter must have a string name"):
        EvalSpec(train_input_fn, exporters=Exporter(3))


def model_fn(features, labels, mode, params):
    raise NotImplementedError


def made(members, name="TPUEstimator", base=tpu.TPUEstimator):
    cls = type(name, (base,), members)
    return cls(model_fn, config=tpu.RunConfig(), use_tpu=False, train_batch_size=1)


def test_copies_of_the_original_must_not_redefine_dead_methods():
    with pytest.raises(NotImplementedError, match=r"overrides \['_augment_model_fn'"):
        made({"_augment_model_fn": lambda self: None})
    with pytest.raises(NotImplementedError, match=r"_call_input_fn.*in place of a copy"):
        made({"_call_input_fn": lambda self: None, "train": lambda self: None})
    with pytest.raises(NotImplementedError, match=r"overrides \['_call_model_fn'"):
        made({"_call_model_fn": lambda self: None})
    assert made({"train": lambda self: "mine"}).train() == "mine"  # the original let that name


def test_methods_that_only_the_original_called_are_refused():
    with pytest.raises(NotImplementedError, match="_create_and_assert_global_step"):
        made({"_create_and_assert_global_step": lambda self, graph: None}, "Mine")


def test_names_of_our_own_are_members_too():
    with pytest.raises(ValueError, match=r"does override \['_mode_rules'\]"):
        made({"_mode_rules": lambda self: None}, "Mine")


GIVEN_UP = """
import threading
import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator

def model_fn(features, labels, mode):
    return estimator.EstimatorSpec(mode, predictions=features * 2)

def examples():
    for i in range(3):
        yield np.full([1, 4], i, np.float32)
    %s

def input_fn():
    return tf.data.Dataset.from_generator(examples, tf.float32, [1, 4])

results = estimator.Estimator(model_fn).predict(input_fn)
print("first", next(results)[0])


class Keeps:
    pass  # Python finds out at its very end that nobody wants what a circle holds


keeps = Keeps()
keeps.circle, keeps.results = keeps, results
del keeps, results
"""


# A process of its own: a fork does not end as a script does.
@pytest.mark.slow
@pytest.mark.parametrize("then", ["return", "threading.Event().wait()"], ids=["ends", "blocks"])
def test_a_script_that_gives_them_up_ends_in_silence(then):
    script = [sys.executable, "-c", GIVEN_UP % then]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "first 0.0" in done.stdout
    assert "Exception ignored" not in done.stderr
    assert "Traceback" not in done.stderr


def test_ref_variables_train_where_they_are_asked_for(tmp_path):
    """By an argument, though TensorFlow 2's behaviour is on; what looks after a write sees it."""
    kinds = []

    def model_fn(features, labels, mode, params):
        old = tf.get_variable("old", [], initializer=tf.ones_initializer(), use_resource=False)
        new = tf.get_variable("new", [], initializer=tf.zeros_initializer(), trainable=False)
        kinds[:] = [variable.op.type for variable in (old, new)]
        loss = tf.square(old - 3.0)
        train = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
        with tf.control_dependencies([train]):
            train_op = tf.group(
                tf.assign(new, old * 1.0), tf.assign_add(tf.train.get_global_step(), 1)
            )
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    est = make_estimator(tmp_path, model_fn)
    est.train(train_input_fn, steps=2)
    assert kinds == ["VariableV2", "VarHandleOp"]
    assert [est.get_variable_value(name) for name in ("old", "new")] == [2.5, 2.5]
