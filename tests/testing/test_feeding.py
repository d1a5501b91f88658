"""`testing.batches`: what replicas and hosts are fed, in each input mode."""

import numpy as np
import pytest

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat import InputPipelineConfig, TPUConfig, testing

from .models import EVAL, PREDICT, classifier


def input_fn(params):
    """The numbers from 0 on, with their negatives as labels."""
    numbers = np.arange(64, dtype=np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((numbers, -numbers))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def fed(steps):
    """The numbers of each replica, per step."""
    return [[batch.features.tolist() for batch in step] for step in steps]


def of_mode(mode, **given):
    config = TPUConfig(per_host_input_for_training=getattr(InputPipelineConfig, mode))
    arguments = {"replicas": 2, "count": 2, "batch_size": 4, "tpu_config": config, **given}
    return testing.batches(input_fn, **arguments)


@pytest.mark.parametrize(
    ("mode", "hosts", "expected"),
    [
        ("PER_SHARD_V1", 1, [[[0, 1], [0, 1]], [[2, 3], [2, 3]]]),
        ("PER_HOST_V1", 1, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
        ("PER_HOST_V1", 2, [[[0, 1], [0, 1]], [[2, 3], [2, 3]]]),
        ("PER_HOST_V2", 1, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
        ("PER_HOST_V2", 2, [[[0, 1], [0, 1]], [[2, 3], [2, 3]]]),
        ("BROADCAST", 1, [[[0, 1, 2, 3], [0, 1, 2, 3]], [[4, 5, 6, 7], [4, 5, 6, 7]]]),
        ("SLICED", 1, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
    ],
)
def test_modes(mode, hosts, expected):
    steps = of_mode(mode, hosts=hosts)
    assert fed(steps) == expected
    batch = steps[1][1]
    assert (batch.step, batch.replica, batch.host) == (1, 1, hosts - 1)
    assert batch.padding is None
    np.testing.assert_array_equal(batch.labels, -batch.features)


def test_batch_axis():
    def transposed(params):
        dataset = input_fn(params)
        return dataset.map(lambda x, y: (tf.stack([x, x + 100.0]), y))

    config = TPUConfig(per_host_input_for_training=InputPipelineConfig.PER_HOST_V1)
    [[first, second]] = testing.batches(
        transposed, replicas=2, count=1, batch_size=4, tpu_config=config, batch_axis=[1, 0]
    )
    assert first.features.tolist() == [[0, 1], [100, 101]]
    assert second.features.tolist() == [[2, 3], [102, 103]]
    assert second.labels.tolist() == [-2, -3]


def test_padding_of_predictions():
    def of_five(params):
        dataset = tf.data.Dataset.from_tensor_slices(np.arange(5, dtype=np.float32))
        return dataset.batch(params["batch_size"])

    steps = testing.batches(of_five, mode=PREDICT, replicas=2, batch_size=4)
    assert [[batch.features.shape for batch in step] for step in steps] == [[(2,), (2,)]] * 2
    assert steps[0][1].features.tolist() == [2, 3]
    assert [batch.padding.tolist() for batch in steps[0]] == [[False, False]] * 2
    assert [batch.padding.tolist() for batch in steps[1]] == [[False, True], [True, True]]
    assert steps[1][0].labels is None


def test_data_that_ends_within_a_step():
    """Three batches of two replicas are one step and a half."""
    config = TPUConfig(per_host_input_for_training=InputPipelineConfig.PER_HOST_V2)

    def of_six(params):
        dataset = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.float32))
        return dataset.batch(params["batch_size"], drop_remainder=True)

    steps = testing.batches(of_six, replicas=2, batch_size=4, tpu_config=config)
    assert fed(steps) == [[[0, 1], [2, 3]]]


def test_evaluation_has_an_input_mode_of_its_own():
    given = {"mode": EVAL, "replicas": 2, "count": 1, "batch_size": 4}
    assert fed(testing.batches(input_fn, **given)) == [[[0, 1], [2, 3]]]


def test_lookup_table_and_text():
    def of_words(params):
        words = tf.constant(["a", "b", "c"])
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(words, tf.range(3)), -1
        )
        dataset = tf.data.Dataset.from_tensor_slices({"word": ["b", "x", "c", "a"]})
        dataset = dataset.map(lambda x: {**x, "id": table.lookup(x["word"])})
        return dataset.batch(params["batch_size"], drop_remainder=True)

    [[batch]] = testing.batches(of_words, count=1, batch_size=4)
    assert batch.features["id"].tolist() == [1, -1, 2, 0]
    assert batch.features["word"].tolist() == [b"b", b"x", b"c", b"a"]


def test_generator_and_params():
    seen = []

    def of_generator(params):
        seen.append((params["batch_size"], params["top"]))
        dataset = tf.data.Dataset.from_generator(
            lambda: iter(range(params["top"])), tf.int32, tf.TensorShape([])
        )
        return dataset.batch(params["batch_size"], drop_remainder=True)

    steps = testing.batches(of_generator, {"top": 6}, batch_size=2, count=9)
    assert fed(steps) == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert seen == [(2, 6)]


def test_seeded_order_is_that_of_training():
    """Dropping nothing, and shuffling alike: model_fn is fed the same in `run`'s estimator."""
    fed_to_model = []

    def shuffled(params):
        dataset = tf.data.Dataset.range(64).shuffle(64).map(lambda x: tf.cast(x, tf.float32))
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        return dataset.map(lambda x: (x[:, None], tf.cast(x, tf.int32) % 3))

    def model_fn(features, labels, mode, params):
        def keep(x):
            fed_to_model.append(x[:, 0].tolist())
            return x

        kept = tf.py_func(keep, [features], tf.float32)
        kept.set_shape(features.shape)
        return classifier()(kept, labels, mode, params)

    config = tf.estimator.tpu.RunConfig(
        tf_random_seed=1, tpu_config=TPUConfig(iterations_per_loop=1, num_shards=1)
    )
    estimator = tf.estimator.tpu.TPUEstimator(model_fn, config=config, train_batch_size=8)
    estimator.train(shuffled, steps=3)
    steps = testing.batches(shuffled, batch_size=8, seed=1)
    assert [step[0].features[:, 0].tolist() for step in steps] == fed_to_model


def without_params():
    return tf.data.Dataset.range(4).batch(2)


def queued(params):
    return tf.train.batch([tf.constant(1.0)], params["batch_size"])


@pytest.mark.parametrize(
    ("function", "given", "error", "said"),
    [
        (input_fn, {"replicas": 3}, ValueError, "4 must be divisible by number of replicas 3"),
        (input_fn, {"replicas": 3, "hosts": 2}, ValueError, "3 replicas cannot be spread evenly"),
        (input_fn, {"replicas": 0}, ValueError, "replicas must be positive, got 0"),
        (input_fn, {"replicas": True}, TypeError, "replicas must be int, got .*True"),
        (input_fn, {"count": 0}, ValueError, "count must be positive, got 0"),
        (input_fn, {"hosts": "1"}, TypeError, "hosts must be int"),
        (input_fn, {"batch_size": 4.0}, TypeError, "batch_size must be int"),
        (input_fn, {"mode": "predict"}, ValueError, "mode must be one of .*'predict'"),
        (input_fn, {"params": {"batch_size": 3}}, ValueError, "reserved keys"),
        (without_params, {}, ValueError, "must take 'params'|params"),
        (queued, {}, NotImplementedError, "queue runners"),
        (None, {}, TypeError, "input_fn"),
    ],
)
def test_bad_arguments(function, given, error, said):
    with pytest.raises(error, match=said):
        testing.batches(function, **{"batch_size": 4, **given})
