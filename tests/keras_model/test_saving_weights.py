"""`est.keras_model()` writes `.weights.h5` files by TF1 names, and reads them back."""

import h5py
import numpy as np
import pytest
import tensorflow as tf
from support.legacy_models import examples, make_estimator, train_input_fn
from support.untuned import untuned


@pytest.fixture(params=[1, 2])
def make(request, tmp_path, strategy):
    """`make(name)` is an estimator on one or on two replicas."""

    def of(name):
        return make_estimator(
            tmp_path / name, use_tpu=True, train_distribute=strategy(request.param)
        )

    return of


def dataset():
    data = tf.data.Dataset.from_tensor_slices(examples())
    return untuned(data.batch(16, drop_remainder=True))


def test_there_and_back(make, tmp_path):
    source = make("source")
    source.train(train_input_fn, steps=5)
    file = str(tmp_path / "all.weights.h5")
    source.keras_model(train_input_fn).save_weights(file)
    with h5py.File(file) as opened:
        saved = {key.replace(":", "/"): np.array(value) for key, value in opened["vars"].items()}
    assert {"hidden", "output", "hidden/Adam", "global_step"} < set(saved)
    for name, value in saved.items():
        np.testing.assert_array_equal(value, source.get_variable_value(name))

    target = make("target")
    model = target.keras_model(train_input_fn)
    model.load_weights(file)
    for variable in model.variables:
        if variable.path in saved:
            np.testing.assert_array_equal(variable.numpy(), saved[variable.path])
    model.fit(dataset(), epochs=1, verbose=0)
    source.train(train_input_fn, steps=4)
    assert target.latest_checkpoint().endswith("model.ckpt-9")
    for name in ("hidden", "output/Adam_1"):
        np.testing.assert_allclose(
            target.get_variable_value(name), source.get_variable_value(name), rtol=1e-5, atol=1e-7
        )


def test_weights_of_predictions_alone(make, tmp_path):
    source = make("source")
    source.train(train_input_fn, steps=5)
    x, _ = examples(8)
    model = source.keras_model()
    expected = model.predict(x, verbose=0)
    small = str(tmp_path / "small.weights.h5")
    model.save_weights(small)
    whole = make("whole").keras_model(train_input_fn)
    whole.load_weights(small)  # Its slots stay as they are.
    np.testing.assert_array_equal(whole.predict(x, verbose=0)["class"], expected["class"])
    assert whole.evaluate(dataset(), verbose=0)
    big = str(tmp_path / "big.weights.h5")
    whole.save_weights(big)
    model.load_weights(big)  # The file's slots are not needed.


def test_a_file_that_does_not_fit(make, tmp_path):
    model = make("source").keras_model(train_input_fn)
    file = str(tmp_path / "a.weights.h5")
    model.save_weights(file)
    with pytest.raises(ValueError, match="This model has no variables yet"):
        make("empty").keras_model().load_weights(file)
    with h5py.File(file, "a") as opened:
        del opened["vars/output"]
    with pytest.raises(ValueError, match=r"no values for \['output'\]"):
        model.load_weights(file)
    with h5py.File(file, "a") as opened:
        opened["vars/output"] = np.zeros([2, 2], np.float32)
    with pytest.raises(ValueError, match="shape"):
        model.load_weights(file)
