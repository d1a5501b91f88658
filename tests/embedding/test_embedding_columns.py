import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
import tf_keras
from support import columns_probe, table_trainings
from support.legacy_models import training_spec

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding

PROBE = pathlib.Path(columns_probe.__file__)
OF_TABLES = {  # what the model's optimizers are to tables, by columns_probe.OPTIMIZERS
    "sgd": embedding.StochasticGradientDescentParameters(0.2),
    "adagrad": embedding.AdagradParameters(0.2),
    "momentum": embedding.MomentumParameters(0.2, 0.9),
    "nesterov": embedding.MomentumParameters(0.2, 0.9, use_nesterov=True),
    "ftrl": embedding.FtrlParameters(
        0.2, l1_regularization_strength=0.01, l2_regularization_strength=0.02
    ),
    "rmsprop": embedding.RMSPropParameters(0.02, 0.9, 0.5, 1e-3),
    "adam": embedding.AdamParameters(0.02),
}
OTHERWISE = {  # on tables
    "adam",  # corrects no bias, and leaves rows alone that no id looks up
    "rmsprop",  # begins with squares of zero, and not of one
}

IN_THE_ORIGINAL = ("sgd", "adagrad", "momentum", "ftrl", "adam")


def estimator_of(folder, use_tpu, optimizer, strategy=None, **more):
    config = tpu.RunConfig(train_distribute=strategy, eval_distribute=strategy)
    return table_trainings.with_columns(
        folder, OF_TABLES[optimizer], optimizer, config, use_tpu=use_tpu, **more
    )


def check_same(found, wanted):
    assert sorted(found) == sorted(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-5, atol=2e-6, err_msg=name)


def slow_but_one(optimizers):
    """Each formula is compared with NumPy's, too: one in a step is enough for a quick run."""
    return [
        pytest.param(each, marks=[] if each == "nesterov" else pytest.mark.slow)
        for each in sorted(optimizers)
    ]


@pytest.mark.parametrize("optimizer", slow_but_one(set(OF_TABLES) - OTHERWISE))
def test_tables_and_ordinary_columns_are_the_same_model(tmp_path, strategy, optimizer):
    found = {}
    for use_tpu in (True, False):
        folder = tmp_path / str(use_tpu)
        estimator = estimator_of(folder, use_tpu, optimizer, strategy(2) if use_tpu else None)
        estimator.train(columns_probe.input_fn, steps=3)
        found[use_tpu] = columns_probe.values_in(str(folder))
    check_same(found[True], found[False])
    assert "input_layer/user_embedding/embedding_weights" in found[True]
    assert "text_title_shared_embedding" in found[True]


def test_a_run_goes_on_from_the_other_kind(tmp_path, strategy):
    def first_batch(params):
        return columns_probe.input_fn(params).take(1).repeat()

    mixed = tmp_path / "mixed"
    for use_tpu in (True, False, True):
        estimator = estimator_of(mixed, use_tpu, "adagrad", strategy(2) if use_tpu else None)
        estimator.train(first_batch, steps=1)
    plain = estimator_of(tmp_path / "plain", False, "adagrad")
    plain.train(first_batch, steps=3)
    mixed_values = columns_probe.values_in(str(mixed))
    check_same(mixed_values, columns_probe.values_in(str(tmp_path / "plain")))
    losses = [
        estimator_of(mixed, use_tpu, "adagrad").evaluate(columns_probe.input_fn, steps=4)["loss"]
        for use_tpu in (True, False)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parity
def test_the_original_and_tables_read_each_others_checkpoints(tmp_path, original):
    """Numbers, names and checkpoints of 2.15 off TPU; then each goes on where the other stopped."""
    theirs = tmp_path / "theirs"
    off_tpu = estimator_of(tmp_path / "off", False, "adagrad")
    off_tpu.train(columns_probe.input_fn, steps=2)
    given = [{"model_dir": str(theirs), "steps": 2, "optimizer": "adagrad"}]
    for optimizer in IN_THE_ORIGINAL:
        ours = tmp_path / optimizer
        estimator_of(ours, True, optimizer).train(columns_probe.input_fn, steps=2)
        shutil.copytree(ours, tmp_path / f"{optimizer}_off")
        given.append({"model_dir": str(ours), "steps": 2, "optimizer": optimizer})
    first, *others = original.run(PROBE, given=given)
    check_same(columns_probe.values_in(str(tmp_path / "off")), first["values"])

    on_theirs = estimator_of(theirs, True, "adagrad")
    evaluated = on_theirs.evaluate(columns_probe.input_fn, steps=4)
    assert evaluated["loss"] == pytest.approx(first["results"]["loss"], rel=1e-5)
    assert evaluated["out"] == pytest.approx(first["results"]["out"], rel=1e-4)
    on_theirs.train(columns_probe.input_fn, steps=2)
    went_on = dict(zip(IN_THE_ORIGINAL, others, strict=True))
    check_same(columns_probe.values_in(str(theirs)), went_on["adagrad"]["values"])
    for optimizer, found in went_on.items():
        off_tpu = estimator_of(tmp_path / f"{optimizer}_off", False, optimizer)
        off_tpu.train(columns_probe.input_fn, steps=2)
        check_same(columns_probe.values_in(off_tpu.model_dir), found["values"])
        on_tables = estimator_of(tmp_path / optimizer, True, optimizer)
        evaluated = on_tables.evaluate(columns_probe.input_fn, steps=4)
        assert evaluated["loss"] == pytest.approx(found["results"]["loss"], rel=1e-5)


def model_of_sequences(columns, kernel_shape):
    def model_fn(features, labels, mode, params):
        del params
        sequence, lengths = tf_keras.experimental.SequenceFeatures(columns)(features)
        kernel = tf.get_variable("kernel", kernel_shape, initializer=columns_probe.seeded(4))
        mask = tf.sequence_mask(lengths, sequence.shape[1], tf.float32)
        out = tf.reduce_sum(tf.reduce_sum(sequence * kernel, 2) * mask, 1)
        loss = 0.5 * tf.reduce_mean(tf.square(out - labels))
        return training_spec(mode, loss, tf.train.GradientDescentOptimizer(0.1))

    return model_fn


def test_columns_of_sequences_get_sequences_and_their_lengths(tmp_path, strategy):
    ids = tf.feature_column.sequence_categorical_column_with_identity("words", 9)
    initializer = columns_probe.seeded(1)
    column = tf.tpu.experimental.embedding_column(
        ids, 2, initializer=initializer, max_sequence_length=3
    )
    examples = [[1, 2, 2, 8], [], [5], [7, 7, 3]]
    labels = np.array([1.0, -1.0, 0.5, 2.0], np.float32)

    def input_fn(params):
        del params
        indices = [(i, j) for i, example in enumerate(examples) for j in range(len(example))]
        values = np.array(sum(examples, []), np.int64)  # noqa: RUF017
        words = tf.SparseTensor(indices, values, [4, 4])
        return tf2.data.Dataset.from_tensors(({"words": words}, labels)).repeat()

    estimator = tpu.TPUEstimator(
        model_of_sequences([column], [3, 2]),
        str(tmp_path),
        tpu.RunConfig(train_distribute=strategy(2)),
        train_batch_size=4,
        embedding_config_spec=embedding.EmbeddingConfigSpec(
            [column], embedding.StochasticGradientDescentParameters(0.5)
        ),
    )
    estimator.train(input_fn, steps=1)
    table = np.random.RandomState(1).normal(size=(9, 2)).astype(np.float32)
    kernel = np.random.RandomState(4).normal(size=(3, 2)).astype(np.float32)
    out = np.array([sum(table[i] @ kernel[j] for j, i in enumerate(e[:3])) for e in examples])
    error = (out - labels) / 4
    wanted = table.copy()
    for example, e in zip(examples, error, strict=True):
        for j, i in enumerate(example[:3]):
            wanted[i] -= 0.5 * e * kernel[j]
    [name] = [n for n in estimator.get_variable_names() if n.endswith("embedding_weights")]
    np.testing.assert_allclose(estimator.get_variable_value(name), wanted, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    old = estimator_of(tmp_path_factory.mktemp("old"), False, "adagrad")
    old.train(columns_probe.input_fn, steps=2)
    return old


def test_a_warm_start_reaches_tables(tmp_path, strategy, old):
    warm = {"warm_start_from": old.model_dir}
    new = estimator_of(tmp_path / "new", True, "adagrad", strategy(2), **warm)
    new.train(columns_probe.input_fn, steps=1)
    name = "input_layer/user_embedding/embedding_weights"
    first, now = (e.get_variable_value(name) for e in (old, new))
    assert np.abs(first - now).max() < 0.2  # one step away, not another start
    fresh = np.random.RandomState(1).normal(size=first.shape)
    assert np.abs(fresh - now).max() > 0.3


@pytest.mark.parametrize("names", [{"/": "/"}, None], ids=["all", "by name"])
def test_init_from_checkpoint_in_model_fn_reaches_tables(tmp_path, strategy, old, names):
    tables = [n for n in old.get_variable_names() if n.endswith(("_weights", "_embedding"))]

    def initialize():
        assert not {v.op.name for v in tf.trainable_variables()} & set(tables)
        tf.train.init_from_checkpoint(old.model_dir, names or {n: n for n in tables})

    sgd = embedding.StochasticGradientDescentParameters(1e-9)
    config = tpu.RunConfig(train_distribute=strategy(2))
    new = table_trainings.with_columns(tmp_path / "new", sgd, "sgd", config, initialize)
    new.train(columns_probe.input_fn, steps=1)
    assert len(tables) == 3
    for name in tables:
        np.testing.assert_allclose(
            new.get_variable_value(name), old.get_variable_value(name), rtol=1e-6, err_msg=name
        )


def model_of_sums(column):
    def model_fn(features, labels, mode, params):
        dense = tf.feature_column.input_layer(features, column)
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(dense, 1) - labels))
        return training_spec(mode, loss, tf.train.GradientDescentOptimizer(0.5))

    return model_fn


def test_tables_of_the_tensor_core_are_model_fns_own(tmp_path, strategy):
    """Their ids come in padded to a static shape; the model's optimizer trains them."""
    found = {}
    for use_tpu in (True, False):
        ids = tf.feature_column.categorical_column_with_identity("title", 9)
        column = tf.tpu.experimental.embedding_column(
            ids,
            2,
            "mean",
            columns_probe.seeded(1),
            embedding_lookup_device="tpu_tensor_core",
            tensor_core_shape=[None, 3],
        )

        def input_fn(params):
            features, labels = columns_probe.data()
            dataset = tf2.data.Dataset.from_tensor_slices(({"title": features["title"]}, labels))
            return dataset.batch(params["batch_size"], drop_remainder=True).repeat()

        estimator = tpu.TPUEstimator(
            model_of_sums(column),
            str(tmp_path / str(use_tpu)),
            tpu.RunConfig(train_distribute=strategy(2) if use_tpu else None),
            {},
            use_tpu=use_tpu,
            train_batch_size=columns_probe.BATCH,
            embedding_config_spec=embedding.EmbeddingConfigSpec(
                [column], embedding.StochasticGradientDescentParameters(9.0)
            ),
        )
        estimator.train(input_fn, steps=3)
        found[use_tpu] = columns_probe.values_in(str(tmp_path / str(use_tpu)))
    check_same(found[True], found[False])
