"""Proofs of Keras 2 under its name in TensorFlow's inside, `tensorflow.python.keras`."""

import numpy as np
import tensorflow.compat.v1 as tf
import tf_keras

from support.proofs import below, evaluate, graph, proves

KERAS = "tf.python.keras"
OF_LAYERS = (
    "advanced_activations convolutional convolutional_recurrent core cudnn_recurrent "
    "dense_attention embeddings local merge noise normalization normalization_v2 pooling "
    "recurrent recurrent_v2 rnn_cell_wrapper_v2 wrappers"
)


@proves(KERAS)
def makes_models(keras):
    assert issubclass(keras.layers.BatchNormalization, keras.layers.Layer)
    assert issubclass(keras.layers.Layer, tf_keras.layers.Layer)
    model = keras.Sequential([keras.layers.Dense(2, kernel_initializer="ones")])
    assert evaluate(lambda: model(tf.ones([1, 3]))).tolist() == [[3.0, 3.0]]
    assert evaluate(lambda: keras.backend.sum(tf.ones([4]))) == 4.0
    assert keras.engine.training.Model is keras.models.Model
    assert keras.utils.np_utils.to_categorical([1]).tolist() == [[0.0, 1.0]]


@proves(*below(f"{KERAS}.layers", OF_LAYERS))
def has_layers(module):
    for name in ("Dense", "BatchNormalization", "LSTM", "Embedding", "Dropout", "Bidirectional"):
        assert issubclass(getattr(module, name), tf_keras.layers.Layer), name


@proves(f"{KERAS}.layers.convolutional.Conv")
def convolves(conv):
    layer = conv(rank=1, filters=1, kernel_size=2, kernel_initializer="ones")
    assert evaluate(lambda: layer(tf.ones([1, 3, 1]))).tolist() == [[[2.0], [2.0]]]


@proves(f"{KERAS}.optimizer_v2")
def optimizes(module):
    optimizer = module.adam.Adam(0.1)
    assert isinstance(optimizer, module.optimizer_v2.OptimizerV2)
    assert isinstance(optimizer, tf_keras.optimizers.legacy.Optimizer)


@proves(f"{KERAS}.optimizer_v2.learning_rate_schedule")
def decays(module):
    rate = module.ExponentialDecay(1.0, decay_steps=1, decay_rate=0.5)
    np.testing.assert_allclose(evaluate(lambda: rate(tf.constant(2))), 0.25)


@proves(f"{KERAS}.saving")
def saves(module, tmp_path):
    path = str(tmp_path / "model.h5")
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[2])])
    module.hdf5_format.save_model_to_hdf5(model, path)
    assert module.save.load_model(path).input_shape == (None, 2)


@proves(*below(f"{KERAS}.api", "_v1.keras _v2.keras keras"))
def has_an_api(keras):
    assert issubclass(keras.layers.Dense, tf_keras.layers.Layer)


@proves(f"{KERAS}.engine.Input")
def makes_inputs(make):
    assert make([3]).shape.as_list() == [None, 3]


@proves(*below(f"{KERAS}.engine", "InputLayer InputSpec Layer base_layer.InputSpec"))
def is_of_layers(thing):
    assert thing is getattr(tf_keras.layers, thing.__name__)


@proves(*below(f"{KERAS}.utils.generic_utils", "CustomObjectScope custom_object_scope"))
def scopes(scope):
    class Custom(tf_keras.layers.Layer):
        pass

    with scope({"Custom": Custom}):
        assert isinstance(
            tf_keras.layers.deserialize({"class_name": "Custom", "config": {}}), Custom
        )


@proves(f"{KERAS}.utils.generic_utils.get_custom_objects")
def knows_custom_objects(get):
    assert get() is tf_keras.utils.get_custom_objects()


@proves(f"{KERAS}.utils.generic_utils.serialize_keras_object")
def serializes(serialize):
    assert serialize(tf_keras.activations.relu) == "relu"


@proves(f"{KERAS}.utils.generic_utils.deserialize_keras_object")
def deserializes(deserialize):
    assert deserialize("relu", {"relu": tf.nn.relu}) is tf.nn.relu


@proves(f"{KERAS}.utils.tf_utils.smart_cond")
def branches(smart_cond):
    assert smart_cond(True, lambda: 1, lambda: 2) == 1

    def build():
        condition = tf.placeholder_with_default(False, [])
        return smart_cond(condition, lambda: tf.ones([]), lambda: tf.zeros([]))

    assert evaluate(build) == 0


@proves(f"{KERAS}.preprocessing.image.img_to_array")
def reads_images(img_to_array):
    assert img_to_array(np.ones([2, 3])).shape == (2, 3, 1)


@proves(f"{KERAS}.preprocessing.image.array_to_img")
def makes_images(array_to_img):
    assert array_to_img(np.ones([2, 3, 1])).size == (3, 2)


@proves(f"{KERAS}.preprocessing.image.save_img")
def writes_images(save_img, tmp_path):
    path = tmp_path / "image.png"
    save_img(str(path), np.ones([2, 3, 1]))
    assert path.read_bytes()[1:4] == b"PNG"


@proves(f"{KERAS}.preprocessing.image.load_img")
def loads_images(load_img, tmp_path):
    path = str(tmp_path / "image.png")
    tf_keras.utils.save_img(path, np.ones([2, 3, 1]))
    assert load_img(path).size == (3, 2)


@proves(f"{KERAS}.preprocessing.sequence.pad_sequences")
def pads(pad_sequences):
    assert pad_sequences([[1], [2, 3]]).tolist() == [[0, 1], [2, 3]]


@proves(f"{KERAS}.layers")
def has_recurrent_layers(layers):
    def build():
        steps = layers.Embedding(5, 4)(tf.constant([[1, 2, 3]]))
        return layers.BatchNormalization()(layers.LSTM(6)(steps))

    assert evaluate(build).shape == (1, 6)


@proves(f"{KERAS}.engine.network", f"{KERAS}.engine.network.Network")
def is_a_network(network):
    Network = getattr(network, "Network", network)
    with graph():
        x = tf_keras.Input([3])
        assert Network([x], [tf_keras.layers.Dense(2)(x)]).output.shape.as_list() == [None, 2]


@proves(f"{KERAS}.optimizers")
def has_optimizers(optimizers):
    with graph():
        x = tf_keras.Input([3])
        model = tf_keras.Model(x, tf_keras.layers.Dense(2)(x))
        model.compile(optimizers.Adam(0.1), "mse")
    assert optimizers.get("sgd") is not None


@proves(f"{KERAS}.preprocessing.text")
def has_tokenizers(text):
    tokenizer = text.Tokenizer()
    tokenizer.fit_on_texts(["a b a"])
    assert tokenizer.texts_to_sequences(["b a"]) == [[2, 1]]
