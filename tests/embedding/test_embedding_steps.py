"""Steps with embedding tables, against NumPy: what model_fn is given, and what tables become."""

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support import columns_probe
from support import numpy_embedding as reference
from support.legacy_models import training_spec

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding

BATCH, ROWS, DIMENSION, LENGTH = 8, 11, 3, 3
WORDS, ITEMS = "words", "items"
FEATURES = {  # table, how long, combiner of the table
    "title": (WORDS, 0),
    "text": (WORDS, 0),
    "history": (ITEMS, LENGTH),
    "liked": (ITEMS, 0),
    "item": ("one", 0),
}
COMBINERS = {WORDS: "mean", ITEMS: "sqrtn", "one": "sum"}
OPTIMIZERS = {
    WORDS: ("Adagrad", {"initial_accumulator": 0.2}, 0.3),
    ITEMS: ("Momentum", {"momentum": 0.9}, 0.2),
    "one": ("StochasticGradientDescent", {}, 0.5),
}


def made(steps):
    rng = np.random.RandomState(5)

    def ids(most, weighted=False):
        count = rng.randint(0, most + 1)
        weights = rng.uniform(0.5, 2.0, count).astype(np.float32) if weighted else np.ones(count)
        return [(int(i), float(w)) for i, w in zip(rng.randint(0, ROWS, count), weights)]  # noqa: B905

    count = BATCH * steps
    data = {
        "title": [ids(4) for _ in range(count)],
        "text": [ids(4) for _ in range(count)],
        "history": [ids(5) for _ in range(count)],
        "liked": [ids(3, weighted=True) for _ in range(count)],
        "item": [[(int(i), 1.0)] for i in rng.randint(0, ROWS, count)],
    }
    return data, rng.normal(size=count).astype(np.float32)


def sparse(examples, values):
    indices = [(i, j) for i, example in enumerate(examples) for j in range(len(example))]
    width = max(1, max(map(len, examples)))
    return tf.SparseTensor(
        np.reshape(indices, [-1, 2]).astype(np.int64), values, [len(examples), width]
    )


def of_examples(data, labels, batches):
    """A dataset of features as TPUEstimator's input_fn gives them."""
    features = {}
    for name in ("title", "text", "history", "liked"):
        ids = np.array([i for example in data[name] for i, _ in example], np.int64)
        features[name] = sparse(data[name], ids)
    weights = np.array([w for example in data["liked"] for _, w in example], np.float32)
    features["weights"] = sparse(data["liked"], weights)
    features["item"] = np.array([example[0][0] for example in data["item"]], np.int32)
    dataset = tf2.data.Dataset.from_tensor_slices((features, labels))
    return dataset.batch(batches, drop_remainder=True)


def spec(**more):
    tables = {
        name: embedding.TableConfig(
            ROWS,
            DIMENSION,
            columns_probe.seeded(seed),
            COMBINERS[name],
            learning_rate=OPTIMIZERS[name][2],
            optimization_parameters=getattr(embedding, f"{OPTIMIZERS[name][0]}Parameters")(
                9.0, **OPTIMIZERS[name][1]
            ),
        )
        for seed, name in enumerate(COMBINERS)
    }
    features = {
        name: embedding.FeatureConfig(table, length, "weights" if name == "liked" else None)
        for name, (table, length) in FEATURES.items()
    }
    return embedding.EmbeddingConfigSpec(
        feature_to_config_dict=features, table_to_config_dict=tables, **more
    )


def model_fn(features, labels, mode, params):
    del params
    assert "weights" not in features
    lengths = features["history_seq_length_"]
    out = tf.zeros_like(lengths, tf.float32)
    for name in FEATURES:
        kernel = tf.get_variable(
            f"kernel_{name}", features[name].shape[1:], initializer=tf.ones_initializer()
        )
        out += tf.reduce_sum(features[name] * kernel, list(range(1, features[name].shape.rank)))
    if mode == "infer":
        return tpu.TPUEstimatorSpec(
            mode, predictions={**{name: features[name] for name in FEATURES}, "out": out}
        )
    loss = 0.5 * tf.reduce_mean(tf.square(out - labels))
    if mode == "eval":
        metrics = (lambda out: {"out": tf.metrics.mean(out)}, [out])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    return training_spec(mode, loss, tf.train.GradientDescentOptimizer(0.1))


class Expected:
    def __init__(self):
        self.tables, self.slots, self.kernels = {}, {}, {}
        for seed, name in enumerate(COMBINERS):
            values = np.random.RandomState(seed).normal(size=(ROWS, DIMENSION))
            self.tables[name] = values.astype(np.float32).astype(np.float64)
            kind, options, _ = OPTIMIZERS[name]
            self.slots[name] = reference.first_slots(kind, options, (ROWS, DIMENSION))
        for name, (_, length) in FEATURES.items():
            self.kernels[name] = np.ones([length, DIMENSION] if length else [DIMENSION])

    def forward(self, data):
        found = {
            name: reference.activation(self.tables[t], data[name], COMBINERS[t], length)
            for name, (t, length) in FEATURES.items()
        }
        out = sum((v * self.kernels[n]).reshape(len(v), -1).sum(1) for n, v in found.items())
        return found, out

    def loss(self, data, labels):
        return 0.5 * np.mean((self.forward(data)[1] - labels) ** 2)

    def step(self, data, labels, multiplier=1.0, limit=None, rates=None):
        found, out = self.forward(data)
        error = (out - labels) / len(labels)
        sums = {table: {} for table in COMBINERS}
        for name, (table, length) in FEATURES.items():
            gradient = error.reshape([-1] + [1] * self.kernels[name].ndim) * self.kernels[name]
            own = reference.row_gradients(
                gradient * multiplier, data[name], COMBINERS[table], length
            )
            sums[table] = reference.add(sums[table], own)
            of_kernel = np.tensordot(error, found[name], 1)
            self.kernels[name] = self.kernels[name] - 0.1 * of_kernel
        for table, of_rows in sums.items():
            kind, options, rate = OPTIMIZERS[table]
            rate = (rates or {}).get(table, rate)
            if limit is not None:
                of_rows = {row: np.clip(g, -limit, limit) for row, g in of_rows.items()}
            reference.update(kind, options, self.tables[table], self.slots[table], of_rows, rate)


def estimator_of(tmp_path, where, given, mode=tpu.InputPipelineConfig.PER_HOST_V1, loop=3):
    """An estimator on a strategy of TensorFlow, or on so many of JAX's devices."""
    if isinstance(where, int):
        fields, shards = {"runtime": "jax"}, where
    else:
        fields, shards = {"train_distribute": where, "eval_distribute": where}, None
    config = tpu.RunConfig(
        model_dir=str(tmp_path),
        tpu_config=tpu.TPUConfig(loop, num_shards=shards, per_host_input_for_training=mode),
        **fields,
    )
    return tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=True,
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
        predict_batch_size=BATCH,
        embedding_config_spec=given,
    )


def batches_of(data, labels):
    for start in range(0, len(labels), BATCH):
        stop = start + BATCH
        yield {n: v[start:stop] for n, v in data.items()}, labels[start:stop]


def check_variables(estimator, expected, rtol=1e-5, atol=1e-6):
    def check(name, wanted):
        found = estimator.get_variable_value(name)
        np.testing.assert_allclose(found, wanted, rtol, atol, err_msg=name)

    for name, table in expected.tables.items():
        check(name, table)
        for slot in expected.slots[name]:
            check(f"{name}/{OPTIMIZERS[name][0]}", slot)
    for name, kernel in expected.kernels.items():
        check(f"kernel_{name}", kernel)


V1, V2 = tpu.InputPipelineConfig.PER_HOST_V1, tpu.InputPipelineConfig.PER_HOST_V2


@pytest.mark.parametrize(
    ("runtime", "replicas", "mode"),
    [
        ("tensorflow", 1, V1),
        ("tensorflow", 2, V1),
        ("tensorflow", 2, V2),
        ("jax", 1, V1),
        # Who is fed what is decided before a runtime is asked for anything.
        pytest.param("jax", 2, V1, marks=pytest.mark.slow),
        ("jax", 2, V2),
    ],
)
def test_training_evaluation_and_prediction_are_those_of_numpy(
    tmp_path, strategy, runtime, replicas, mode
):
    data, labels = made(4)

    def input_fn(params):
        return of_examples(data, labels, params["batch_size"])

    expected = Expected()
    where = replicas if runtime == "jax" else strategy(replicas)
    estimator = estimator_of(tmp_path, where, spec(), mode)
    estimator.train(input_fn, steps=1)
    batches = list(batches_of(data, labels))
    expected.step(*batches[0])
    check_variables(estimator, expected)
    estimator.train(input_fn, steps=3)
    for batch in batches[:3]:
        expected.step(*batch)
    check_variables(estimator, expected)

    results = estimator.evaluate(input_fn, steps=2)
    losses = [expected.loss(*batch) for batch in batches[:2]]
    assert results["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    found = list(estimator.predict(input_fn))
    activations, out = expected.forward(data)
    assert len(found) == len(labels)
    for name, wanted in {**activations, "out": out}.items():
        np.testing.assert_allclose([f[name] for f in found], wanted, rtol=1e-4, atol=1e-5)


def test_multiplier_limit_and_rates_are_of_the_step(tmp_path, strategy):
    data, labels = made(3)

    given = spec(
        clipping_limit=0.05,
        experimental_gradient_multiplier_fn=lambda step: 2.0 / (1.0 + tf.cast(step, tf.float32)),
    )
    tables = dict(given.table_to_config_dict)
    tables["one"] = tables["one"]._replace(
        learning_rate=None, learning_rate_fn=lambda step: 0.5 * tf.cast(step, tf.float64) + 0.1
    )
    given = given._replace(table_to_config_dict=tables)
    estimator = estimator_of(tmp_path, strategy(2), given)
    estimator.train(lambda params: of_examples(data, labels, params["batch_size"]), steps=3)
    expected = Expected()
    for step, batch in enumerate(batches_of(data, labels)):
        expected.step(
            *batch, multiplier=2.0 / (1 + step), limit=0.05, rates={"one": 0.5 * step + 0.1}
        )
    check_variables(estimator, expected)


@pytest.mark.parametrize("runtime", ["tensorflow", "jax"])
def test_the_last_batch_of_a_prediction_is_padded(tmp_path, strategy, runtime):
    data, labels = made(2)
    short = {name: examples[:13] for name, examples in data.items()}

    def input_fn(params):
        dataset = of_examples(short, labels[:13], 13).unbatch()
        return dataset.batch(params["batch_size"])

    for mode in (tpu.InputPipelineConfig.PER_HOST_V1, tpu.InputPipelineConfig.PER_HOST_V2):
        where = 2 if runtime == "jax" else strategy(2)
        found = list(estimator_of(tmp_path, where, spec(), mode).predict(input_fn))
        assert len(found) == 13
        activations, _ = Expected().forward(short)
        for name, wanted in activations.items():
            np.testing.assert_allclose([f[name] for f in found], wanted, rtol=1e-5, atol=1e-6)
