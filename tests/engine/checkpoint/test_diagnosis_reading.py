"""Checkpoints that cannot be read: which, and why."""

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import finite_input_fn, make_estimator, make_model_fn, train_input_fn

from .damages import damage


def test_a_checkpoint_that_the_caller_named_is_no_other(tmp_path):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=4)
    estimator.train(train_input_fn, steps=8)
    damage(tmp_path, 8, "cut")
    path = str(tmp_path / "model.ckpt-8")
    with pytest.raises(tf.errors.DataLossError, match=r"Could not read.*model\.ckpt-8"):
        estimator.evaluate(train_input_fn, steps=1, checkpoint_path=path)
    with pytest.raises(tf.errors.DataLossError, match=r"Could not read.*model\.ckpt-8"):
        list(estimator.predict(finite_input_fn(20), checkpoint_path=path))


def test_a_checkpoint_removed_while_it_is_read(tmp_path):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=4)
    estimator.train(train_input_fn, steps=8)
    build = make_model_fn()

    def removing(features, labels, mode, params):
        for file in tmp_path.glob("model.ckpt-8.*"):
            file.unlink()
        return build(features, labels, mode, params)

    other = make_estimator(tmp_path, removing)
    path = str(tmp_path / "model.ckpt-8")
    with pytest.raises(ValueError, match=r"not a valid checkpoint.*\n.*was removed while it"):
        other.evaluate(train_input_fn, steps=1, checkpoint_path=path)
    estimator.train(train_input_fn, steps=4)  # 8 again, from 4
    assert other.evaluate(train_input_fn, steps=1)["global_step"] == 4


def test_a_damaged_checkpoint_without_an_older_one_says_what_is_left_to_do(tmp_path):
    estimator = make_estimator(tmp_path, keep_checkpoint_max=1)
    estimator.train(train_input_fn, steps=2)
    damage(tmp_path, 2, "cut")
    with pytest.raises(tf.errors.DataLossError, match="no older one beside it") as caught:
        estimator.train(train_input_fn, steps=2)
    assert "Graph execution error" not in str(caught.value)
    assert not hasattr(caught.value, "__notes__")
