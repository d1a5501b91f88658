import numpy as np
import pandas
import pytest

import tpu_estimator_compat.v1 as tf


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
