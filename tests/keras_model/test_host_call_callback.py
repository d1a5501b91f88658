import keras
import tensorflow.compat.v1 as tf
from support.legacy_models import examples, make_estimator, make_model_fn

from tpu_estimator_compat.keras_model.host_call_callback import HostCallCallback

from .fitting import dataset


def counting():
    """A host call that counts its calls in a variable, after a while."""

    def host_call(loss):
        calls = tf.get_variable("calls", [], tf.int64, tf.zeros_initializer(), trainable=False)
        with tf.control_dependencies([loss]):
            return [calls.assign_add(1)]

    return host_call, [tf.reshape(tf.train.get_global_step(), [1])]


def test_a_users_callback_sees_what_host_calls_did(tmp_path):
    counts = []

    class Looks(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            counts.append(int({v.path: v for v in self.model.variables}["calls"].numpy()))

    model_fn = make_model_fn(host_call=counting)
    model = make_estimator(tmp_path, model_fn, use_tpu=True, loop=2).keras_model()
    given = keras.callbacks.CallbackList([Looks()], add_history=True, model=model)
    model.fit(dataset(), epochs=1, callbacks=given, verbose=0)
    assert counts == [2, 4]
    kinds = [type(callback) for callback in given.callbacks]
    assert kinds.index(HostCallCallback) < kinds.index(Looks)


def test_single_batches_make_theirs(tmp_path):
    model_fn = make_model_fn(host_call=counting)
    model = make_estimator(tmp_path, model_fn, use_tpu=True).keras_model()
    x, y = examples(16)
    model.train_on_batch(x, y)
    assert int({v.path: v for v in model.variables}["calls"].numpy()) == 1
