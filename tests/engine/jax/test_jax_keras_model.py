import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import TESTS
from support.jax_estimators import RUNTIMES, assert_near, on
from support.legacy_models import examples, make_model_fn, train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding


def data(steps):
    return train_input_fn({"batch_size": 16}).take(steps)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """What a model of two replicas does, by runtime."""

    def of(runtime):
        estimator = on(runtime, 2, tmp_path_factory.mktemp(runtime))
        model = estimator.keras_model()
        history = model.fit(data(-1), epochs=2, steps_per_epoch=6, verbose=0)
        features = examples(40)[0]  # the last batch is short
        return {
            "loss": history.history["loss"],
            "evaluation": model.evaluate(data(4), verbose=0, return_dict=True),
            "predictions": model.predict(features, batch_size=16, verbose=0),
            "call": {k: v.numpy() for k, v in model(features[:6]).items()},
            "weights": {v.path: v.numpy() for v in model.variables},
            "checkpoint": estimator.get_variable_value("hidden"),
        }

    return {runtime: of(runtime) for runtime in RUNTIMES}


WHAT = ["loss", "evaluation", "predictions", "call", "weights", "checkpoint"]


@pytest.mark.parametrize("what", WHAT)
def test_both_runtimes_agree(numbers, what):
    assert_all_near(numbers["jax"][what], numbers["tensorflow"][what])


def assert_all_near(found, expected):
    tf.nest.assert_same_structure(found, expected)
    flat = (dict(enumerate(tf.nest.flatten(each))) for each in (found, expected))
    assert_near(*flat)


EAGER_TENSORFLOW_1 = """
import sys
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.enable_eager_execution()
sys.path.insert(0, {tests!r})
from support.jax_estimators import on
from support.legacy_models import examples, train_input_fn

model = on("jax", 1, {folder!r}).keras_model(train_input_fn)
model.fit(train_input_fn({{"batch_size": 16}}).take(1), verbose=0)
print(model.predict(examples(40)[0], batch_size=16, verbose=0)["class"].shape)
"""


@pytest.mark.slow
def test_predicts_where_tensorflow_1_is_eager(tmp_path, forks):
    """In a process of its own: nothing undoes what it switches."""
    code = EAGER_TENSORFLOW_1.format(tests=str(TESTS), folder=str(tmp_path))
    done = forks.run("-c", code)
    assert done.stdout == "(40,)\n", done.stderr


def test_weights_that_are_set_are_used(tmp_path):
    model = on("jax", 2, tmp_path).keras_model(train_input_fn)
    model.fit(data(2), verbose=0)
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    assert model.evaluate(data(2), verbose=0) == pytest.approx([np.log(3), 0.5], abs=0.3)
    model.fit(data(1), verbose=0)  # and go back to the devices
    assert np.all(np.isfinite(model.get_weights()[0]))


def test_weights_are_saved_and_loaded(tmp_path):
    model = on("jax", 2, tmp_path / "model").keras_model(train_input_fn)
    model.fit(data(3), verbose=0)
    model.save_weights(tmp_path / "a.weights.h5")
    kept = [v.numpy() for v in model.variables]
    model.fit(data(3), verbose=0)
    model.load_weights(tmp_path / "a.weights.h5")
    for before, variable in zip(kept, model.variables, strict=True):
        np.testing.assert_array_equal(before, variable.numpy())


def test_a_nan_ends_it_and_leaves_no_checkpoint(tmp_path):
    def train_op(loss, params):
        step = tf.train.get_global_step()
        weight = tf.trainable_variables()[0]
        nan = tf.where(tf.equal(step, 3), np.float32(np.nan), np.float32(1.0))
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.0))
        update = optimizer.minimize(loss)
        return tf.group(update, weight.assign(weight * nan), step.assign_add(1))

    estimator = on("jax", 2, tmp_path, make_model_fn(train_op))
    model = estimator.keras_model()
    model.fit(data(10), verbose=0)
    assert estimator.latest_checkpoint() is None
    [step] = [v.numpy() for v in model.variables if v.path == "global_step"]
    assert step == 5  # the fourth step spoils the weights, and the fifth's loss shows it


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (lambda: data(2).unbatch().batch(15, drop_remainder=True), "15 rows cannot be shared by 2"),
        (lambda: data(2).unbatch().batch(16), "must have static shape"),
    ],
)
def test_batches_that_do_not_go_are_refused(tmp_path, dataset, message):
    model = on("jax", 2, tmp_path).keras_model()
    with pytest.raises(ValueError, match=message):
        model.fit(dataset(), verbose=0)


def test_a_step_alone_is_refused(tmp_path):
    model = on("jax", 2, tmp_path).keras_model(train_input_fn)
    with pytest.raises(NotImplementedError, match="use fit, evaluate and predict"):
        model.train_step(next(iter(data(1))))


def with_tables(features, labels, mode, params):
    """A regression on rows of a table; ids that are 0 are none."""
    kernel = tf.get_variable("kernel", [3, 1], initializer=tf.ones_initializer())
    out = tf.matmul(features["ids"] + features["x"], kernel)[:, 0]
    if mode == tpu.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"out": out})
    loss = tf.reduce_mean(tf.square(out - labels))
    if mode == tpu.ModeKeys.EVAL:
        metrics = (lambda out: {"out": tf.metrics.mean(out)}, [out])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def table_data():
    rng = np.random.RandomState(1)
    features = {"ids": rng.randint(0, 6, 24), "x": rng.normal(size=[24, 3]).astype(np.float32)}
    return features, rng.normal(size=24).astype(np.float32)


def table_batches(sparse=False):
    dataset = tf.data.Dataset.from_tensor_slices(table_data()).batch(8, drop_remainder=True)
    if not sparse:
        return dataset
    return dataset.map(lambda x, y: ({**x, "ids": tf.sparse.from_dense(x["ids"][:, None])}, y))


def model_with_tables(runtime, directory):
    tables = embedding.EmbeddingConfigSpec(
        table_to_config_dict={
            "table": embedding.TableConfig(
                6, 3, tf.random_normal_initializer(seed=2), combiner="mean"
            )
        },
        feature_to_config_dict={"ids": embedding.FeatureConfig("table")},
        optimization_parameters=embedding.AdagradParameters(0.1),
    )
    estimator = on(
        runtime, 2, directory, with_tables, embedding_config_spec=tables, train_batch_size=8
    )
    return estimator, estimator.keras_model()


def test_embedding_tables(tmp_path):
    """They stay on the host; Keras' batches are dealt to the replicas, as TensorFlow's are."""

    def of(runtime):
        estimator, model = model_with_tables(runtime, tmp_path / runtime)
        history = model.fit(table_batches(), epochs=2, verbose=0)
        return {
            "loss": history.history["loss"],
            "evaluation": model.evaluate(table_batches(), verbose=0, return_dict=True),
            "predictions": model.predict(table_data()[0], batch_size=8, verbose=0),
            "table": estimator.get_variable_value("table"),
        }

    found, expected = (of(runtime) for runtime in ("jax", "tensorflow"))
    assert found["predictions"]["out"].shape == (24,)
    assert_all_near(found, expected)


def test_sparse_batches_are_not_dealt(tmp_path):
    _, model = model_with_tables("jax", tmp_path)
    with pytest.raises(NotImplementedError, match=r"cannot share a batch with SparseTensorSpec"):
        model.fit(table_batches(sparse=True), verbose=0)
