import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as v1
from support.legacy_models import logits_of, make_estimator, train_input_fn, training_spec

from .fitting import dataset


def test_fit_trains_and_leaves_a_checkpoint_for_train(estimator):
    model = estimator.keras_model()
    history = model.fit(dataset(), epochs=5, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    assert estimator.latest_checkpoint().endswith("model.ckpt-20")
    estimator.train(train_input_fn, steps=5)
    assert estimator.latest_checkpoint().endswith("model.ckpt-25")
    model.fit(dataset(), epochs=1, verbose=0)
    assert estimator.latest_checkpoint().endswith("model.ckpt-29")


def test_fit_equals_train(estimator, tmp_path, strategy):
    replicas = estimator.config.train_distribute.num_replicas_in_sync
    estimator.train(train_input_fn, steps=8)
    other = make_estimator(tmp_path / "other", use_tpu=True, train_distribute=strategy(replicas))
    other.keras_model().fit(dataset(2), epochs=1, verbose=0)
    for name in ("hidden", "output/Adam"):
        np.testing.assert_allclose(
            other.get_variable_value(name), estimator.get_variable_value(name), rtol=1e-6
        )


def test_validation_and_callbacks(estimator, tmp_path):
    seen = []
    record = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(sorted(logs))
    )
    stop = keras.callbacks.EarlyStopping("loss", patience=0, min_delta=10.0)
    model = estimator.keras_model()
    model.fit(dataset(), epochs=9, validation_data=dataset(), callbacks=[record, stop], verbose=0)
    assert seen == [["loss", "val_accuracy", "val_loss"]] * 2


def test_another_signature_names_both(tmp_path):
    model = make_estimator(tmp_path).keras_model(train_input_fn)
    wrong = tf.data.Dataset.from_tensors((tf.zeros([16, 5]), tf.zeros([16], tf.int32)))
    with pytest.raises(ValueError, match=r"expected dtype float32 and shape \(16, 4\)"):
        model.fit(wrong, verbose=0)


def test_a_nan_ends_fit_with_the_number_of_its_step(tmp_path, caplog):
    """The last good checkpoint stays the newest."""

    def model_fn(features, labels, mode, params):
        step = v1.train.get_global_step()
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        loss += tf.where(step >= params["until"], float("nan"), 0.0)
        return training_spec(mode, loss, v1.train.GradientDescentOptimizer(0.1))

    estimator = make_estimator(tmp_path, model_fn, use_tpu=True, loop=3, params={"until": 4})
    model = estimator.keras_model()
    model.fit(dataset(None), steps_per_epoch=3, verbose=0)
    history = model.fit(dataset(None), steps_per_epoch=6, epochs=4, verbose=0)
    assert len(history.epoch) == 1
    assert np.isnan(history.history["loss"][-1])
    assert "The loss of step 5 is NaN: training stops." in caplog.text
    assert "fit ended with a NaN loss at step 5; nothing was saved." in caplog.text
    assert estimator.latest_checkpoint().endswith("model.ckpt-3")
