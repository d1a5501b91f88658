"""Random ops on JAX's devices: fresh in every step, others on every replica, and repeatable."""

import keras
import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.jax_estimators import on, variables
from support.legacy_models import Fetching, adam, finite_input_fn, logits_of, train_input_fn
from tensorflow.python.ops import random_ops

import tpu_estimator_compat as tpu
from tpu_estimator_compat import layers

REPLICAS, STEPS, ROWS, COLUMNS = 2, 4, 8, 400


def _ones():
    return tf.ones([ROWS, COLUMNS])


def _uniform(columns=COLUMNS):
    return tf.random.uniform([ROWS, columns])


def _logits():
    return tf.tile(tf.log([[0.1, 0.2, 0.7]]), [ROWS, 1])


def _in_cond(features):
    # One branch draws, the other does not.
    return tf.cond(features[0, 0] > -99.0, _uniform, lambda: tf.zeros([ROWS, COLUMNS]))


def _in_while(features, draw=lambda _: _uniform(COLUMNS // 4)):
    """What a loop draws in its turns, side by side."""

    def body(i, drawn):
        return i + 1, tf.concat([drawn[:, COLUMNS // 4 :], draw(features)], 1)

    start = (0, tf.zeros([ROWS, COLUMNS]))
    return tf.while_loop(lambda i, _: i < 4, body, start, maximum_iterations=4)[1]


def _keras_dropout(features):
    return keras.layers.Dropout(0.3)(_ones(), training=True)


def _tf_keras_dropout(features):
    import tf_keras

    return tf_keras.layers.Dropout(0.3)(_ones(), training=True)


def _shuffled(features):
    return tf.random.shuffle(tf.range(ROWS * 4))[:, None]


UNIFORM, NORMAL, DROPPED = (0.5, 0.2887), (0.0, 1.0), (1.0, 0.6547)
DRAWS = {  # and their mean and standard deviation
    "uniform": (lambda f: _uniform(), UNIFORM),
    "a_second_time": (lambda f: _uniform(), UNIFORM),
    "normal": (lambda f: tf.random.normal([ROWS, COLUMNS]), NORMAL),
    "bfloat16": (lambda f: tf.random.normal([ROWS, COLUMNS], dtype=tf.bfloat16), NORMAL),
    "float64": (lambda f: tf.random.normal([ROWS, COLUMNS], dtype=tf.float64), NORMAL),
    "truncated": (lambda f: tf.random.truncated_normal([ROWS, COLUMNS]), (0.0, 0.8796)),
    "integers": (lambda f: tf.random.uniform([ROWS, COLUMNS], -5, 5, tf.int32), (-0.5, 2.8723)),
    "multinomial": (lambda f: tf.multinomial(_logits(), COLUMNS), (1.6, 0.6633)),
    "shuffle": (_shuffled, (15.5, 9.2331)),
    "parameterized": (
        lambda f: random_ops.parameterized_truncated_normal([ROWS, COLUMNS], 1.0, 2.0, -1.0, 2.0),
        (0.5763, 0.8407),
    ),
    "far_from_the_mean": (
        lambda f: random_ops.parameterized_truncated_normal([ROWS, COLUMNS], 0.0, 1.0, 6.0, 9.0),
        (6.1585, 0.1543),
    ),
    "nn_dropout": (lambda f: tf.nn.dropout(_ones(), rate=0.3), DROPPED),
    "layers_dropout": (lambda f: layers.dropout(_ones(), 0.3, training=True), DROPPED),
    "tf_keras_dropout": (_tf_keras_dropout, DROPPED),
    "keras_dropout": (_keras_dropout, DROPPED),
    "in_cond": (_in_cond, UNIFORM),
    "in_while": (_in_while, UNIFORM),
    "in_cond_in_while": (lambda f: _in_while(f, lambda f: _in_cond(f)[:, : COLUMNS // 4]), UNIFORM),
    "in_a_function": (lambda f: tf2.function(_uniform)(), UNIFORM),
    "in_map": (lambda f: tf.map_fn(lambda x: 0 * x[0] + tf.random.uniform([COLUMNS]), f), UNIFORM),
}


def draws(tmp_path, names, seed=1, replicas=REPLICAS):
    """What the replicas draw in each step, float64 [STEPS, replicas, numbers], by name."""

    def model_fn(features, labels, mode, params):
        drawn = {name: tf.identity(DRAWS[name][0](features)) for name in names}
        # As predictions they have a row for each example.
        drawn = {k: tf.reshape(tf.cast(v, tf.float64), [ROWS, -1]) for k, v in drawn.items()}
        return tpu.TPUEstimatorSpec(mode, predictions=drawn)

    size = ROWS * replicas
    estimator = on(
        "jax", replicas, tmp_path, model_fn, tf_random_seed=seed, predict_batch_size=size
    )
    rows = list(estimator.predict(finite_input_fn(size * STEPS)))
    return {n: np.stack([r[n] for r in rows]).reshape(STEPS, replicas, -1) for n in names}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draws(tmp_path_factory.mktemp("drawn"), list(DRAWS))


@pytest.mark.parametrize("name", DRAWS)
def test_distribution(drawn, name):
    mean, deviation = DRAWS[name][1]
    values = drawn[name]
    if name == "shuffle":  # every row is a permutation
        values = values.reshape(STEPS * REPLICAS, -1)
        assert {tuple(sorted(row)) for row in values} == {tuple(range(ROWS * 4))}
    assert abs(values.mean() - mean) < 5 * deviation / np.sqrt(values.size)
    assert abs(values.std() / deviation - 1) < 0.03


@pytest.mark.parametrize("name", DRAWS)
def test_every_step_and_every_replica_draws_others(drawn, name):
    values = drawn[name].reshape(STEPS * REPLICAS, -1)
    assert len({row.tobytes() for row in values}) == STEPS * REPLICAS
    if name != "shuffle":  # of fewer numbers
        related = np.abs(np.corrcoef(values)[~np.eye(STEPS * REPLICAS, dtype=bool)])
        assert related.max() < 0.1


def test_ops_draw_others_than_each_other(drawn):
    names = [name for name, (_, like) in DRAWS.items() if like == UNIFORM]
    related = np.corrcoef([drawn[name].ravel() for name in names])
    assert np.abs(related[~np.eye(len(names), dtype=bool)]).max() < 0.05


def test_a_loop_draws_others_in_every_turn(drawn):
    turns = drawn["in_while"].reshape(STEPS, REPLICAS, ROWS, 4, COLUMNS // 4)
    turns = turns.transpose(3, 0, 1, 2, 4).reshape(4, -1)
    assert np.abs(np.corrcoef(turns)[~np.eye(4, dtype=bool)]).max() < 0.1


def test_seeds(tmp_path):
    """The same of the same seed, whatever number it is; others of none."""
    names = ["uniform", "keras_dropout"]
    found = [
        draws(tmp_path / str(i), names, seed, 1)["uniform"].tobytes()
        for i, seed in enumerate([5, 5, -5, 0, None, None])
    ]
    assert found[0] == found[1]
    assert len(set(found)) == 5


def dropping_model_fn(features, labels, mode, params):
    hidden = layers.dropout(features, 0.2, training=True)
    hidden = tf.cond(hidden[0, 0] > -99.0, lambda: tf.nn.dropout(hidden, rate=0.2), lambda: hidden)
    hidden = keras.layers.Dropout(0.2)(hidden, training=True)
    hidden = hidden + tf.random.normal(hidden.shape, stddev=0.1)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(hidden))
    noise = tf.reduce_mean(hidden, name="noise")
    loss += 0 * tf.reshape(noise, [])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=adam(loss, params))


def _trained(model_dir, *, stops=(14,), loop=5, hooks=()):
    for stop in stops:
        keras.utils.set_random_seed(3)
        estimator = on(
            "jax",
            2,
            model_dir,
            dropping_model_fn,
            save_input_state=True,
            tpu_config={"iterations_per_loop": loop},
        )
        estimator.train(train_input_fn, max_steps=stop, hooks=hooks)
    return variables(estimator)


def test_training_repeats_itself_however_it_is_cut(tmp_path):
    """Loops of any length, single steps that fetch more, and a restart from a checkpoint."""
    expected = _trained(tmp_path / "expected")
    ways = {
        "restarted": {"stops": (6, 14), "loop": 3},
        # Steps that fetch more are made one by one, by another program.
        "fetching": {"hooks": [Fetching(["noise:0", "random_normal:0"])], "loop": 1},
    }
    for way, arguments in ways.items():
        found = _trained(tmp_path / way, **arguments)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, 1e-5, 1e-6, err_msg=f"{way}: {name}")
