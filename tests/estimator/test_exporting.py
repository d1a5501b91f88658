import pytest
import tensorflow as tf

from tpu_estimator_compat.estimator import exporting


def test_a_receiver_of_features_as_they_are():
    spec = {"x": tf.TensorSpec([None, 2]), "ids": tf.SparseTensorSpec([None, None], tf.int64)}
    with tf.Graph().as_default():
        receiver = exporting.receiver_of(spec)
        assert receiver.features is receiver.receiver_tensors
        assert {name: tf.type_spec_from_value(t) for name, t in receiver.features.items()} == spec
        bare = exporting.receiver_of(tf.TensorSpec([None], tf.string))
        assert list(bare.receiver_tensors.values()) == [bare.features]
        with pytest.raises(ValueError, match="A signature has tensors by name: export_saved_model"):
            exporting.receiver_of({"x": {"deep": tf.TensorSpec([None])}})
