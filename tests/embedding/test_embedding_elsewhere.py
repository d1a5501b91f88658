"""Tables in exports, in `keras_model()` and other Keras models, and with hooks."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support import columns_probe, table_trainings
from support.legacy_models import Fetching, training_spec
from support.untuned import untuned

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding
from tpu_estimator_compat.tools import weight_map

BATCH, ROWS = 8, 6


def model_fn(features, labels, mode, params):
    del params
    kernel = tf.get_variable("kernel", [3, 1], initializer=columns_probe.seeded(4))
    out = tf.matmul(features["ids"] + features["x"], kernel)[:, 0]
    if mode == "infer":
        return tpu.TPUEstimatorSpec(mode, predictions={"out": out})
    loss = tf.reduce_mean(tf.square(out - labels))
    if mode == "eval":
        metrics = (lambda out: {"out": tf.metrics.mean(out)}, [out])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    return training_spec(mode, loss, tf.train.AdamOptimizer(0.1))


def data():
    rng = np.random.RandomState(1)
    count = 3 * BATCH
    ids = rng.randint(0, ROWS, count)
    x = rng.normal(size=[count, 3]).astype(np.float32)
    return {"ids": ids, "x": x}, rng.normal(size=count).astype(np.float32)


def batches(size):
    dataset = tf2.data.Dataset.from_tensor_slices(data())
    return untuned(dataset.batch(size, drop_remainder=True))


def input_fn(params):
    return batches(params["batch_size"])


def estimator_of(folder, strategy, **changes):
    given = {
        "table_to_config_dict": {
            "table": embedding.TableConfig(ROWS, 3, columns_probe.seeded(2), combiner=None)
        },
        "feature_to_config_dict": {"ids": embedding.FeatureConfig("table")},
        "optimization_parameters": embedding.AdamParameters(0.1),
    }
    return tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(
            model_dir=str(folder), train_distribute=strategy, eval_distribute=strategy, **changes
        ),
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
        predict_batch_size=BATCH,
        embedding_config_spec=embedding.EmbeddingConfigSpec(**given),
    )


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.usefixtures("quick_release")
def test_fit_trains_tables_as_train_does(tmp_path, strategy, replicas):
    by_train = estimator_of(tmp_path / "train", strategy(replicas))
    by_train.train(input_fn, steps=3)
    by_fit = estimator_of(tmp_path / "fit", strategy(replicas))
    model = by_fit.keras_model(input_fn)
    model.fit(batches(BATCH), epochs=1, verbose=0)
    wanted = columns_probe.values_in(str(tmp_path / "train"))
    found = columns_probe.values_in(str(tmp_path / "fit"))
    assert {"table", "table/Adam", "table/Adam_1"} <= set(found)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    loss = by_train.evaluate(input_fn, steps=3)["loss"]
    assert model.evaluate(batches(BATCH), verbose=0)[0] == pytest.approx(loss, rel=1e-5)


def table_and_squares():
    [table] = [v for v in tf.global_variables() if v.op.name == "table"]
    return table, "Square:0"


def test_hooks_see_tables_and_steps(tmp_path, strategy):
    estimator = estimator_of(tmp_path, strategy(1), tpu_config=tpu.TPUConfig(1))
    hook = Fetching(table_and_squares)
    estimator.train(input_fn, steps=3, hooks=[hook])
    rows, losses = zip(*hook.seen, strict=True)
    assert len(rows) == 3
    assert losses[0].shape == (BATCH,)
    first = np.random.RandomState(2).normal(size=(ROWS, 3))
    # After each loop, with the rules of TPUs: see the page on hooks.
    np.testing.assert_array_equal(rows[2], estimator.get_variable_value("table"))
    for earlier, later in itertools.pairwise([first, *rows]):
        assert np.abs(later - earlier).max() > 0.01


def new_model(activation_of):
    """The model written anew; `activation_of` takes ids of shape [batch] to what is looked up."""
    inputs = {
        "ids": keras.Input([], BATCH, dtype="int64", name="ids"),
        "x": keras.Input([3], BATCH, name="x"),
    }
    summed = keras.layers.Add()([activation_of(inputs["ids"]), inputs["x"]])
    return keras.Model(inputs, keras.layers.Dense(1, use_bias=False, name="last")(summed))


@pytest.fixture(scope="module")
def of_one_table(tmp_path_factory, strategy):
    """An estimator that was trained with a table."""
    estimator = estimator_of(tmp_path_factory.mktemp("table"), strategy(2))
    estimator.train(input_fn, steps=2)
    return estimator


def test_nothing_of_the_variable_that_finds_gradients_is_saved(of_one_table):
    assert not [n for n in of_one_table.get_variable_names() if "dummy" in n]


def check_maps(estimator, model, mapping):
    """Weights of a training with tables make a new model predict the same."""
    values = weight_map.read_variables(estimator.model_dir)
    assert weight_map.propose(values, model) == mapping
    assert set(weight_map.assign(values, model, mapping)) == {
        "beta1_power",
        "beta2_power",
        "global_step",
    }
    wanted = [prediction["out"] for prediction in estimator.predict(input_fn)]
    found = np.concatenate([model(features)[:, 0] for features, _ in batches(BATCH)])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_table_is_taken_to_an_embedding_layer(of_one_table):
    model = new_model(keras.layers.Embedding(ROWS, 3, name="table"))
    mapping = {"table": "table/embeddings", "kernel": "last/kernel"}
    check_maps(of_one_table, model, mapping)


def test_a_table_is_taken_to_a_distributed_embedding(of_one_table):
    layers = pytest.importorskip("keras_rs").layers
    config = layers.TableConfig("table", ROWS, 3)
    feature = layers.FeatureConfig("ids", config, (BATCH,), (BATCH, 3))
    model = new_model(layers.DistributedEmbedding(feature, name="tables"))
    mapping = {"table": "tables/table/embeddings", "kernel": "last/kernel"}
    check_maps(of_one_table, model, mapping)


def estimator_of_columns(folder, strategy):
    config, adagrad = tpu.RunConfig(train_distribute=strategy), embedding.AdagradParameters(0.2)
    return table_trainings.with_columns(folder, adagrad, "adagrad", config)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, strategy):
    folder = tmp_path_factory.mktemp("columns")
    estimator_of_columns(folder, strategy(2)).train(columns_probe.input_fn, steps=2)
    return folder


def test_an_export_serves_raw_ids(tmp_path, strategy, trained):
    estimator = estimator_of_columns(trained, strategy(2))
    path = estimator.export_saved_model(str(tmp_path / "exports"), table_trainings.receiver_fn)

    def predict_input_fn(params):
        features, _ = columns_probe.data(columns_probe.BATCH)
        return tf2.data.Dataset.from_tensor_slices(features).batch(params["batch_size"])

    wanted = [prediction["out"] for prediction in estimator.predict(predict_input_fn)]
    features, _ = columns_probe.data(columns_probe.BATCH)
    served = tf2.saved_model.load(path.decode(), tags=["serve"]).signatures["serving_default"]
    [out] = served(tf2.constant(serialized(features))).values()
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


def serialized(features):
    """The features as tf.train.Examples, one for each row."""
    dense = {
        name: tf2.sparse.to_dense(value).numpy() if isinstance(value, tf.SparseTensor) else value
        for name, value in features.items()
    }
    examples = []
    for row in range(columns_probe.BATCH):
        example = tf.train.Example()
        for name, value in dense.items():
            given = [v for v in np.ravel(value[row]) if v or name == "age"]
            kind = example.features.feature[name]
            (kind.float_list if value.dtype == np.float32 else kind.int64_list).value.extend(given)
        examples.append(example.SerializeToString())
    return examples


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.usefixtures("quick_release")
def test_a_keras_model_predicts_what_sparse_ids_and_weights_say(strategy, trained, replicas):
    estimator = estimator_of_columns(trained, strategy(replicas))
    count = 3 * columns_probe.BATCH - 3  # the last batch is short

    def examples(params=None):
        features, _ = columns_probe.data()
        return untuned(tf2.data.Dataset.from_tensor_slices(features).take(count).batch(8))

    wanted = [prediction["out"] for prediction in estimator.predict(examples)]
    found = estimator.keras_model().predict(examples(), verbose=0)
    # The sums are of values near 1.
    np.testing.assert_allclose(found["out"], wanted, rtol=1e-5, atol=1e-6)
