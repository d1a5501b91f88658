"""What `tf.contrib` and `tf.estimator.inputs` refuse, in the words of the originals."""

import numpy as np
import pandas
import pytest

import tpu_estimator_compat.v1 as tf

HParams = tf.contrib.training.HParams


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate", "Malformed hyperparameter value: rate"),
        ("rate=high", "Could not parse hparam 'rate' of type 'float' with value 'high'"),
        ("rate=1,rate=2", "Multiple assignments to variable 'rate'"),
        ("units[0]=1,units[0]=2", r"Multiple assignments to variable 'units\[0\]'"),
        ("units=[1],units[0]=2", "Multiple assignments"),
        ("units[0]=[1]", "Assignment of a list to a list index"),
        ("units=1", "Must pass a list for multi-valued parameter: units"),
        ("rate=[1,2]", "Must not pass a list for single-valued parameter: rate"),
        ("speed=1", "Unknown hyperparameter type for speed"),
        ("on=maybe", "Could not parse hparam 'on' of type 'bool'"),
    ],
)
def test_text_of_hyperparameters(text, message):
    with pytest.raises(ValueError, match=message):
        HParams(rate=0.1, units=[1, 2], on=True).parse(text)


def test_types_of_hyperparameters():
    hparams = HParams(rate=0.1, count=1, on=True, name="a")
    for name, value in (("count", 1.5), ("on", 1), ("name", 3), ("rate", "1"), ("rate", True)):
        with pytest.raises(ValueError, match=f"Could not cast hparam '{name}'"):
            hparams.set_hparam(name, value)
    with pytest.raises(KeyError):
        hparams.set_hparam("missing", 1)
    with pytest.raises(ValueError, match="reserved: rate"):
        hparams.add_hparam("rate", 1)
    with pytest.raises(ValueError, match="cannot be empty"):
        hparams.add_hparam("more", [])
    with pytest.raises(ValueError, match="incompatible with default"):
        hparams.get("rate", [1])
    with pytest.raises(NotImplementedError, match="to_json"):
        HParams(hparam_def=object())


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


def test_crossed_columns_and_weight_decay():
    with pytest.raises(ValueError, match=r"init_from_checkpoint"):
        tf.contrib.layers.crossed_column(["a", "b"], 3, ckpt_to_load_from="path")
    with tf.Graph().as_default():
        variable = tf.Variable(1.0, use_resource=False, name="v")
        optimizer = tf.contrib.opt.AdamWOptimizer(0.1)
        with pytest.raises(NotImplementedError, match="resource variables only"):
            optimizer.minimize(variable * 2.0)
