import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.export import receivers
from tpu_estimator_compat.estimator import export


def test_raw_receivers_of_eager_tensors_and_arrays():
    make = export.build_raw_serving_input_receiver_fn(
        {"eager": tf.zeros([2, 3]), "array": np.zeros([2], np.int32)}
    )
    with tf.Graph().as_default():
        features = make().features
    assert features["eager"].shape.as_list() == [None, 3]
    assert features["array"].shape.as_list() == [None]
    assert features["array"].dtype == tf.int32


def test_supervised_receivers_of_an_input_fn():
    def input_fn(size):
        return tf.data.Dataset.from_tensors(({"x": tf.zeros([size, 3])}, tf.zeros([size])))

    make = export.build_supervised_input_receiver_fn_from_input_fn(input_fn, size=4)
    with tf.Graph().as_default():
        made = make()
    assert made.features["x"].shape.as_list() == [None, 3]
    assert set(made.receiver_tensors) == {"x", "label"}
    with pytest.raises(ValueError, match="should return"):
        export.build_supervised_input_receiver_fn_from_input_fn(lambda: tf.zeros([1]))


def test_a_receiver_of_features_as_they_are():
    spec = {"x": tf.TensorSpec([None, 2]), "ids": tf.SparseTensorSpec([None, None], tf.int64)}
    with tf.Graph().as_default():
        receiver = receivers.receiver_of(spec)
        assert receiver.features is receiver.receiver_tensors
        assert {name: tf.type_spec_from_value(t) for name, t in receiver.features.items()} == spec
        bare = receivers.receiver_of(tf.TensorSpec([None], tf.string))
        assert list(bare.receiver_tensors.values()) == [bare.features]
        with pytest.raises(ValueError, match="A signature has tensors by name: export_saved_model"):
            receivers.receiver_of({"x": {"deep": tf.TensorSpec([None])}})
