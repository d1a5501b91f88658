import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    examples,
    finite_input_fn,
    gradient_descent,
    logits_of,
    make_estimator,
    make_model_fn,
    train_input_fn,
)

import tpu_estimator_compat as tpu

from .files import checkpoint_steps, damage


def test_a_wrong_shape_in_a_checkpoint_names_both_shapes(tmp_path):
    make_estimator(tmp_path).train(train_input_fn, steps=1)
    before = checkpoint_steps(tmp_path)

    def wider(features, labels, mode, params):
        hidden = tf.get_variable("hidden", [4, 9])
        output = tf.get_variable("output", [9, 3])
        logits = tf.matmul(tf.matmul(features, hidden), output)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=gradient_descent(loss))

    shapes = r"(?s)Assign requires shapes.*'hidden' has shape \(4, 9\).*\(4, 8\) in the check"
    with pytest.raises(tf.errors.InvalidArgumentError, match=shapes):
        make_estimator(tmp_path, wider).train(train_input_fn, steps=1)
    assert checkpoint_steps(tmp_path) == before


def test_a_variable_that_may_change_its_shape_is_restored(tmp_path):
    def one_that_grows(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        seen = tf.get_variable("seen", initializer=[0.0], trainable=False, validate_shape=False)
        more = tf.concat([tf.placeholder_with_default(seen, [None]), [1.0]], 0)
        with tf.control_dependencies([seen.assign(more)]):
            train_op = gradient_descent(loss)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make_estimator(tmp_path / "growing", one_that_grows)
    for _ in range(2):
        estimator.train(train_input_fn, steps=2)
    assert estimator.get_variable_value("seen").tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]


class OwnSaver(tf.train.Saver):
    """Restores nothing, whatever the shapes are, or fails with an error of its own."""

    def restore(self, sess, save_path):
        raise self.error


OWN_ERRORS = [
    tf.errors.DataLossError(None, None, "of my own store"),
    tf.errors.NotFoundError(None, None, "of my own store"),
    tf.errors.FailedPreconditionError(None, None, "of my own store"),
    ValueError("of my own store"),
]


@pytest.mark.parametrize("error", OWN_ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_the_savers_own_is_no_damage(tmp_path, caplog, error):
    make_estimator(tmp_path).train(train_input_fn, steps=1)

    def scaffold():
        saver = OwnSaver()
        saver.error = error
        return tf.train.Scaffold(saver=saver)

    own = make_estimator(tmp_path, make_model_fn(scaffold_fn=lambda: scaffold))
    with pytest.raises(type(error)) as caught:
        own.train(train_input_fn, steps=1)
    assert str(caught.value) == str(error)
    assert "Falling back" not in caplog.text


def test_an_error_of_a_saveable_is_no_damage(tmp_path, caplog):
    """An iterator that only the init op initializes, as in TensorFlow 2.15."""

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices(examples()).repeat().batch(16)
        iterator = tf.data.make_initializable_iterator(dataset)
        saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
        tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, saveable)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    estimator = make_estimator(tmp_path)
    estimator.train(input_fn, steps=1)
    with pytest.raises(tf.errors.FailedPreconditionError):
        estimator.train(input_fn, steps=1)
    assert "Falling back" not in caplog.text


def test_unreadable_checkpoints_are_an_error_and_are_left_alone(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=1)
    for step in (0, 1):
        (tmp_path / f"model.ckpt-{step}.index").write_bytes(b"not an index")
    with pytest.raises(tf.errors.DataLossError, match=r"Could not read.*model\.ckpt-1"):
        estimator.train(train_input_fn, steps=1)
    for step in (0, 1):
        assert (tmp_path / f"model.ckpt-{step}.index").read_bytes() == b"not an index"


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


def test_a_damaged_only_checkpoint_gets_advice(tmp_path):
    estimator = make_estimator(tmp_path, keep_checkpoint_max=1)
    estimator.train(train_input_fn, steps=2)
    damage(tmp_path, 2, "cut")
    with pytest.raises(
        tf.errors.DataLossError, match="take another model_dir to begin anew"
    ) as caught:
        estimator.train(train_input_fn, steps=2)
    assert "Graph execution error" not in str(caught.value)
    assert not hasattr(caught.value, "__notes__")
