import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.export import receivers
from tpu_estimator_compat.estimator import export


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_bare_tensors_get_default_names(graph):
    x = tf.placeholder(tf.float32)
    receiver = export.ServingInputReceiver(x, x, {"other": x})
    assert receiver == ({"feature": x}, {"input": x}, {"other": {"input": x}})


def test_a_tensor_receiver_hands_over_the_bare_tensor(graph):
    x = tf.placeholder(tf.float32)
    receiver = export.TensorServingInputReceiver(x, {"x": x})
    assert receiver.features is x
    assert receiver.receiver_tensors == {"x": x}
    assert receiver.receiver_tensors_alternatives is None


def test_integers_may_name_features_only(graph):
    x = tf.placeholder(tf.float32)
    assert export.ServingInputReceiver({1: x}, x).features == {1: x}
    with pytest.raises(ValueError, match="receiver_tensor keys must be strings: 1"):
        export.ServingInputReceiver(x, {1: x})
    with pytest.raises(ValueError, match=r"feature keys must be strings or ints: 1\.5"):
        export.ServingInputReceiver({1.5: x}, x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: export.ServingInputReceiver(None, x), "features must be defined"),
        (lambda x: export.ServingInputReceiver(x, None), "receiver_tensors must be defined"),
        (
            lambda x: export.ServingInputReceiver({"a": 1.0}, x),
            r"feature a must be a Tensor, SparseTensor, or RaggedTensor\. Got float: 1\.0",
        ),
        (lambda x: export.ServingInputReceiver(x, [x]), "receiver_tensor input must be a Tensor"),
        (
            lambda x: export.ServingInputReceiver(x, x, [x]),
            "receiver_tensors_alternatives must be a dict",
        ),
        (
            lambda x: export.ServingInputReceiver(x, x, {"a": "b"}),
            "receiver_tensors_alternative input must be a Tensor",
        ),
        (lambda x: export.TensorServingInputReceiver(None, x), "features must be defined"),
        (lambda x: export.TensorServingInputReceiver({"x": x}, x), "feature must be a Tensor"),
        (lambda x: export.SupervisedInputReceiver(x, None, x), "labels must be defined"),
        (lambda x: export.UnsupervisedInputReceiver(x, {"a": 1}), "receiver_tensor a must be"),
    ],
)
def test_what_is_no_tensor_is_refused(graph, make, message):
    with pytest.raises(ValueError, match=message):
        make(tf.placeholder(tf.float32))


def test_sparse_and_ragged_features(graph):
    sparse = tf.sparse_placeholder(tf.int64)
    ragged = tf.ragged.placeholder(tf.int64, 1)
    receiver = export.ServingInputReceiver({"s": sparse, "r": ragged}, {"s": sparse})
    assert receiver.features == {"s": sparse, "r": ragged}


def test_raw_receivers_take_dtype_shape_and_name(graph):
    x = tf.zeros([2, 3], tf.float64, name="given")
    made = export.build_raw_serving_input_receiver_fn({"x": x})()
    placeholder = made.features["x"]
    assert made.receiver_tensors["x"] is placeholder
    assert (placeholder.op.type, placeholder.op.name) == ("Placeholder", "given_1")
    assert (placeholder.dtype, placeholder.shape.as_list()) == (tf.float64, [None, 3])
    fixed = export.build_raw_serving_input_receiver_fn({"x": x}, 5)()
    assert fixed.features["x"].shape.as_list() == [5, 3]


def test_raw_receivers_of_eager_tensors_and_arrays():
    make = export.build_raw_serving_input_receiver_fn(
        {"eager": tf.zeros([2, 3]), "array": np.zeros([2], np.int32)}
    )
    with tf.Graph().as_default():
        features = make().features
    assert features["eager"].shape.as_list() == [None, 3]
    assert features["array"].shape.as_list() == [None]
    assert features["array"].dtype == tf.int32


def test_parsing_receivers(graph):
    spec = {"x": tf.FixedLenFeature([2], tf.float32), "y": tf.VarLenFeature(tf.int64)}
    made = export.build_parsing_serving_input_receiver_fn(spec, 7)()
    examples = made.receiver_tensors["examples"]
    assert examples.op.name == "input_example_tensor"
    assert examples.shape.as_list() == [7]
    assert made.features["x"].shape.as_list() == [7, 2]
    assert isinstance(made.features["y"], tf.SparseTensor)


def test_supervised_receivers(graph):
    x, y = tf.zeros([2, 3]), tf.zeros([2], tf.int32)
    bare = export.build_raw_supervised_input_receiver_fn(x, y)()
    assert bare.receiver_tensors == {"input": bare.features, "label": bare.labels}
    named = export.build_raw_supervised_input_receiver_fn({"a": x}, {"b": y})()
    assert named.receiver_tensors == {"a": named.features["a"], "b": named.labels["b"]}
    with pytest.raises(ValueError, match=r"distinct keys\. Found overlapping keys: {'a'}"):
        export.build_raw_supervised_input_receiver_fn({"a": x}, {"a": y})


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
