import gc

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    examples,
    finite_input_fn,
    logits_of,
    make_estimator,
    train_input_fn,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.session.step_session import StepSession

PER_HOST_V2 = tpu.InputPipelineConfig.PER_HOST_V2


@pytest.mark.parametrize("count", [1, 15, 16, 17, 50])
@pytest.mark.parametrize(
    ("use_tpu", "replicas", "mode"),
    [(False, 1, True), (True, 1, True), (True, 2, True), (True, 4, True), (True, 4, PER_HOST_V2)],
)
def test_gives_every_example_once_in_order(tmp_path, strategy, count, use_tpu, replicas, mode):
    estimator = make_estimator(
        tmp_path,
        use_tpu=use_tpu,
        train_distribute=strategy(replicas) if use_tpu else None,
        tpu_config=tpu.TPUConfig(per_host_input_for_training=mode),
    )
    found = list(estimator.predict(finite_input_fn(count)))
    assert len(found) == count
    x, _ = examples(count)
    np.testing.assert_array_equal(np.stack([f["features"] for f in found]), x)
    assert found[0].keys() == {"class", "features"}
    assert found[0]["class"].shape == ()


def test_the_callers_time_is_not_taken_for_the_models(tmp_path, monkeypatch, tuned):
    """Else whoever takes long over each prediction would get them in short calls for ever."""
    now, happened = 0.0, []
    collect = StepSession.collect

    def collected(self, fetches, most):
        nonlocal now
        happened.append(most)
        now += 0.01 * most
        return collect(self, fetches, most)

    monkeypatch.setattr(StepSession, "collect", collected)
    tuned(clock=lambda: now, most_batches=4)
    estimator = make_estimator(tmp_path)
    for batch in estimator.predict(finite_input_fn(16 * 8), yield_single_examples=False):
        happened.append(len(batch["class"]))
        now += 1000.0
    assert happened == [1, 16, *[2, *[16] * 2], *[4, *[16] * 4], *[4, 16]]


def test_a_generator_may_be_abandoned_and_interleaved(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=3)
    first = estimator.predict(finite_input_fn(64))
    second = estimator.predict(finite_input_fn(64))
    graph = tf.get_default_graph()
    a, b = next(first), next(second)
    np.testing.assert_array_equal(a["features"], b["features"])
    assert tf.executing_eagerly()
    assert tf.get_default_graph() is graph
    estimator.train(train_input_fn, steps=3)
    np.testing.assert_array_equal(next(first)["features"], next(second)["features"])
    first.close()
    del second
    gc.collect()
    assert len(list(estimator.predict(finite_input_fn(20)))) == 20


def test_is_padding_is_there_for_model_fns_that_ask(tmp_path):
    keys = []

    def model_fn(features, labels, mode, params):
        keys.append(sorted(features))
        return tpu.TPUEstimatorSpec(
            mode, predictions={"pad": features["is_padding"], "x": features["x"]}
        )

    def input_fn(params):
        values = {"x": np.arange(20, dtype=np.float32)}
        return tf.data.Dataset.from_tensor_slices(values).batch(params["batch_size"])

    estimator = make_estimator(tmp_path, model_fn, use_tpu=True)
    found = list(estimator.predict(input_fn))
    assert [int(f["pad"]) for f in found] == [0] * 20
    assert keys == [["x"]]
    [_, last] = estimator.predict(input_fn, predict_keys=iter(["x"]), yield_single_examples=False)
    assert {name: value.tolist() for name, value in last.items()} == {"x": [16, 17, 18, 19]}


def test_a_bare_tensor_of_predictions_off_tpu(tmp_path):
    def model_fn(features, mode, params):
        return tpu.TPUEstimatorSpec(mode, predictions=tf.reduce_sum(logits_of(features), axis=1))

    def input_fn(params):
        return tf.data.Dataset.from_tensor_slices(examples(5)[0]).batch(2)

    found = list(make_estimator(tmp_path, model_fn).predict(input_fn))
    assert [np.shape(f) for f in found] == [()] * 5
    with pytest.raises(TypeError, match="predictions must be dict of Tensors"):
        list(make_estimator(tmp_path, model_fn, use_tpu=True).predict(input_fn))


@pytest.mark.parametrize("hooks", [[], [tf.train.SessionRunHook()]])
def test_no_predictions_have_no_examples(tmp_path, hooks):
    def model_fn(features, mode, params):
        return tpu.TPUEstimatorSpec(mode, predictions={})

    with pytest.raises(TypeError, match=r"predictions=\{\}: there are no examples"):
        next(make_estimator(tmp_path, model_fn).predict(finite_input_fn(4), hooks=hooks))


def test_an_input_that_waits_for_predictions_is_not_read_ahead(tmp_path):
    import queue

    requests: queue.Queue = queue.Queue()

    def served():
        while (number := requests.get(timeout=60)) is not None:
            yield np.full([4], number, np.float32)

    def input_fn(params):
        return tf.data.Dataset.from_generator(served, tf.float32, [4]).batch(1)

    found = make_estimator(tmp_path).predict(input_fn)
    for number in range(5):
        requests.put(number)
        assert next(found)["features"][0] == number
    requests.put(None)
    assert list(found) == []


@pytest.mark.parametrize("hooks", [[], [tf.train.SessionRunHook()]])
def test_shapes_on_tpu_are_those_of_the_first_batch(tmp_path, strategy, hooks):
    """A TPU's program has one shape; off TPU they may change."""

    def model_fn(features, labels, mode, params):
        width = tf.cast(tf.reduce_max(features), tf.int32)
        return tpu.TPUEstimatorSpec(mode, predictions={"wide": tf.tile(features, [1, width])})

    def input_fn(params):
        return tf.data.Dataset.from_tensor_slices([[1.0], [1.0], [3.0], [3.0]]).batch(2)

    def predict(use_tpu):
        estimator = tpu.TPUEstimator(
            model_fn,
            config=tpu.RunConfig(model_dir=str(tmp_path), train_distribute=strategy(1)),
            use_tpu=use_tpu,
            train_batch_size=2,
            predict_batch_size=2,
        )
        return [found["wide"].shape for found in estimator.predict(input_fn, hooks=hooks)]

    assert predict(False) == [(1,), (1,), (3,), (3,)]
    message = r"key \(wide\).*dynamic shape.*\(2, 1\) in the first batch, and then \(2, 3\)"
    with pytest.raises(ValueError, match=message):
        predict(True)
