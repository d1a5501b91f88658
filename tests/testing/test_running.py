"""`testing.run`: each field of `Result`, on one replica and four, in three modes."""

import random
import tempfile

import numpy as np
import pytest
import tensorflow as tf_v2

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat import testing

from .models import CLASSES, EVAL, PREDICT, TRAIN, WIDTH, X, Y, classifier, mean_loss
from .sound_models import IDS, SOUND, WORDS, normalized


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    """Nothing is left in the folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    yield
    left = [path.name for path in (tmp_path / "temporary").iterdir()]
    assert [name for name in left if not name.startswith("__autograph_generated_file")] == []


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("replicas", [1, 4])
def test_training_step_is_that_of_numpy(replicas):
    result = testing.run(classifier(), X, Y, replicas=replicas)
    kernel, bias = (result.before[f"dense/{name}"] for name in ("kernel", "bias"))
    assert kernel.shape == (WIDTH, CLASSES)
    shares = softmax(X @ kernel + bias)
    errors = (shares - np.eye(CLASSES)[Y]) / len(X)
    assert result.loss == pytest.approx(-np.log(shares[np.arange(len(Y)), Y]).mean(), rel=1e-5)
    np.testing.assert_allclose(result.gradients["dense/kernel"], X.T @ errors, atol=1e-6)
    np.testing.assert_allclose(result.gradients["dense/bias"], errors.sum(axis=0), atol=1e-6)
    np.testing.assert_allclose(
        result.after["dense/kernel"], kernel - 0.1 * (X.T @ errors), atol=1e-6
    )
    assert (result.mode, result.replicas, result.global_step) == (TRAIN, replicas, 1)
    assert result.losses.shape == (1,)
    assert result.trainable == ["dense/kernel", "dense/bias"]
    assert set(result.moved) == {"dense/kernel", "dense/bias", "global_step"}
    assert (result.metrics, result.predictions, result.host_calls) == ({}, {}, [])
    assert (result.update_ops_ran, result.update_ops_left_out) == ([], [])
    assert result.summaries["loss"] == [(1, pytest.approx(result.loss, rel=1e-5))]
    assert set(result.as_dict()) == {"losses"}
    assert result.graph.get_operation_by_name("dense/MatMul")
    assert result.spec.mode == TRAIN


@pytest.mark.parametrize("replicas", [1, 4])
def test_evaluation(replicas):
    result = testing.run(classifier(), X, Y, mode=EVAL, replicas=replicas, steps=2)
    logits = X @ result.before["dense/kernel"]
    assert result.metrics["accuracy"] == pytest.approx(np.mean(np.argmax(logits, axis=1) == Y))
    assert result.loss == pytest.approx(result.metrics["loss"])
    assert result.losses.shape == (1,)
    assert (result.predictions, result.gradients, result.moved) == ({}, {}, [])
    assert (result.mode, result.global_step, result.host_calls) == (EVAL, 0, [])
    assert set(result.as_dict()) == {"losses", "metrics"}


@pytest.mark.parametrize("replicas", [1, 4])
def test_prediction_has_the_order_of_the_examples(replicas):
    result = testing.run(classifier(), X, mode=PREDICT, replicas=replicas, steps=2)
    logits = X @ result.before["dense/kernel"]
    np.testing.assert_allclose(result.predictions["logits"], np.tile(logits, (2, 1)), rtol=1e-4)
    np.testing.assert_array_equal(
        result.predictions["class"], np.tile(np.argmax(logits, axis=1), 2)
    )
    assert (len(result.losses), result.metrics, result.moved) == (0, {}, [])
    with pytest.raises(ValueError, match="no loss in mode 'infer'"):
        _ = result.loss
    assert set(result.as_dict()) == {"predictions"}


def test_steps_and_summaries():
    def loss_of(labels, logits, params):
        tf.summary.scalar("seen", tf.reduce_sum(tf.cast(labels, tf.float32)))
        return mean_loss(labels, logits, params)

    result = testing.run(classifier(loss_of=loss_of), X, Y, steps=3, use_tpu=False)
    assert len(set(result.losses)) == 3
    assert result.loss == result.losses[-1]
    assert result.global_step == 3
    assert [step for step, _ in result.summaries["seen"]] == [1, 2, 3]
    assert {value for _, value in result.summaries["seen"]} == {float(Y.sum())}


@pytest.mark.parametrize("replicas", [1, 4])
def test_host_calls_have_their_arguments(replicas):
    def host_call(logits):
        def write(step, given):
            return tf.reduce_sum(given) + tf.cast(step[0], tf.float32)

        step = tf.reshape(tf.train.get_or_create_global_step(), [1])
        return write, {"step": step, "given": logits}

    result = testing.run(classifier(host_call=host_call), X, Y, replicas=replicas, steps=2)
    assert [set(call) for call in result.host_calls] == [{"step", "given"}] * 2
    assert [call["given"].shape for call in result.host_calls] == [(8, CLASSES)] * 2
    logits = X @ result.before["dense/kernel"]
    np.testing.assert_allclose(result.host_calls[0]["given"], logits, rtol=1e-4, atol=1e-6)


def test_update_ops():
    sound = testing.run(*SOUND["batch_norm"])
    assert len(sound.update_ops_ran) == 2
    assert sound.update_ops_left_out == []
    assert "batch_normalization/moving_mean" in sound.moved
    assert "batch_normalization/moving_mean" not in sound.trainable
    without = testing.run(classifier(normalized), X, Y)
    assert without.update_ops_left_out == sound.update_ops_ran
    assert "batch_normalization/moving_mean" not in without.moved


def test_disagreement_of_averages_that_each_replica_keeps():
    result = testing.run(*SOUND["batch_norm"], replicas=4)
    assert result.disagreement["dense/kernel"] == 0
    assert result.disagreement["batch_normalization/moving_mean"] >= 0
    assert testing.run(*SOUND["batch_norm"]).disagreement == {}


def test_gradients_are_those_that_are_applied():
    """Rows of an embedding that no example has get none; clipped gradients are clipped."""
    result = testing.run(*SOUND["embedding"])
    gradient = result.gradients["table"]
    unused = sorted(set(range(WORDS)) - set(IDS.ravel().tolist()))
    np.testing.assert_allclose(
        result.after["table"], result.before["table"] - 0.1 * gradient, atol=1e-6
    )
    assert unused
    assert not gradient[unused].any()
    assert gradient[IDS[0, 0]].any()
    clipped = testing.run(*SOUND["clipped_sum"], replicas=4).gradients.values()
    assert np.sqrt(sum(np.sum(g**2) for g in clipped)) == pytest.approx(0.1, rel=1e-4)


def test_variable_without_gradient_is_none():
    def logits_of(features, training):
        tf.layers.dense(features, 2, name="unused")
        return tf.layers.dense(features, CLASSES)

    gradients = testing.run(classifier(logits_of), X, Y).gradients
    assert gradients["unused/kernel"] is None
    assert gradients["dense/kernel"] is not None


def test_model_dir_goes_on(tmp_path):
    first = testing.run(classifier(), X, Y, steps=2, model_dir=tmp_path)
    second = testing.run(classifier(), X, Y, model_dir=tmp_path)
    assert (first.global_step, second.global_step) == (2, 3)
    np.testing.assert_array_equal(first.after["dense/kernel"], second.before["dense/kernel"])
    evaluated = testing.run(classifier(), X, Y, mode=EVAL, model_dir=tmp_path)
    assert evaluated.global_step == 3
    np.testing.assert_array_equal(second.after["dense/kernel"], evaluated.before["dense/kernel"])


def test_sole_tensor_of_predictions():
    def model_fn(features, mode):
        return tf.estimator.EstimatorSpec(mode, predictions=tf.layers.dense(features, CLASSES))

    result = testing.run(model_fn, X, mode=PREDICT, use_tpu=False)
    assert result.predictions["predictions"].shape == (8, CLASSES)


def test_two_runs_are_equal_and_seeds_differ():
    one, other = (testing.run(*SOUND["dropout"], steps=2) for _ in range(2))
    np.testing.assert_array_equal(one.losses, other.losses)
    for name, value in one.after.items():
        np.testing.assert_array_equal(value, other.after[name])
    assert testing.run(*SOUND["dropout"], seed=2).loss != one.losses[0]


def test_state_of_the_process_is_as_before():
    tf_v2.random.set_seed(5)
    random.seed(5)
    np.random.seed(5)
    before = random.getstate(), np.random.get_state()[1].tolist()
    optimizer = tf.train.Optimizer.apply_gradients
    testing.run(classifier(), X, Y)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert tf.train.Optimizer.apply_gradients is optimizer
    assert tf_v2.executing_eagerly()
    drawn = float(tf_v2.random.uniform([]))
    tf_v2.random.set_seed(5)
    assert float(tf_v2.random.uniform([])) == drawn


def test_step_that_raises_no_global_step_ends():
    def train(loss):
        return tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1)).minimize(loss)

    result = testing.run(classifier(train=train), X, Y, steps=3)
    assert (len(result.losses), result.global_step) == (3, 0)


def test_lists_and_text():
    result = testing.run(classifier(), X.tolist(), Y.tolist())
    assert result.loss == pytest.approx(testing.run(classifier(), X, Y).loss)

    def of_text(features, training):
        return tf.layers.dense(tf.strings.to_number(features)[:, None], CLASSES)

    text = [str(i) for i in range(8)]
    assert testing.run(classifier(of_text), text, Y, use_tpu=False).global_step == 1


def test_jax_makes_the_same_step():
    pytest.importorskip("jax")
    result, expected = (
        testing.run(classifier(), X, Y, steps=2, runtime=runtime)
        for runtime in ("jax", "tensorflow")
    )
    np.testing.assert_allclose(result.losses, expected.losses, rtol=1e-5)
    for name, value in expected.after.items():
        np.testing.assert_allclose(result.after[name], value, rtol=1e-4, atol=1e-6)
    for name, gradient in expected.gradients.items():
        np.testing.assert_allclose(result.gradients[name], gradient, rtol=1e-4, atol=1e-6)


def without_features(labels):
    return labels


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"features": np.float32(1)}, ValueError, r"shapes {'features': \(\), 'labels': \(8,\)}"),
        ({"features": {"a": X, "b": 3.0}}, ValueError, r"\"features\['b'\]\": \(\)"),
        ({"labels": Y[:5]}, ValueError, r"'labels': \(5,\)"),
        ({"features": X[:0], "labels": Y[:0]}, ValueError, "at least 1"),
        ({"features": None, "labels": None}, ValueError, "Got None"),
        ({"features": [[1, 2], [3]]}, ValueError, "features must be an array, got list"),
        ({"features": [object()] * 8}, TypeError, "features must be an array of numbers or text"),
        ({"features": (X, X), "labels": None}, ValueError, "Give a dict of features"),
        ({"params": {"batch_size": 3}}, ValueError, "'batch_size'. are reserved keys"),
        ({"params": 3}, TypeError, "params must be a dict of hyperparameters, got .*3"),
        ({"model_fn": None}, ValueError, "model_fn must be provided"),
        ({"model_fn": "x"}, TypeError, "`model_fn` must be callable, given: 'x'"),
        ({"model_fn": without_features}, ValueError, "must include features argument"),
        ({"mode": "predict"}, ValueError, "mode must be one of .*, got 'predict'"),
        ({"steps": 0}, ValueError, "steps must be positive, got 0"),
        ({"steps": True}, TypeError, "steps must be int, got .*True"),
        ({"replicas": 3}, ValueError, "batch size 8 must be divisible by number of replicas 3"),
        ({"replicas": True}, TypeError, "replicas must be int, got .*True"),
        ({"replicas": 2, "use_tpu": False}, ValueError, "use_tpu=False runs on one device"),
        ({"runtime": "torch"}, ValueError, "got 'torch'"),
        ({"model_dir": 3}, TypeError, "model_dir must be a path .*3"),
        ({"seed": "x"}, ValueError, "got 'x'"),
    ],
)
def test_bad_arguments(given, error, said):
    arguments = {"model_fn": classifier(), "features": X, "labels": Y, **given}
    with pytest.raises(error, match=said):
        testing.run(**arguments)
