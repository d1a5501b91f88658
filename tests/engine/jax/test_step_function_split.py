"""Replicas that share several devices: XLA's partitioner divides their step, and nobody notices."""

import dataclasses
import functools
import shutil

import jax
import numpy as np
import pytest
from support.jax_estimators import variables
from tensorflow.python.tpu.ops import tpu_ops

import tpu_estimator_compat as tpu
import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.engine.jax.steps import Steps
from tpu_estimator_compat.tools.preflight.report import Verdict

TOLERANCE = 1e-5

UNITS = 256

PARTITIONS = {2: None, 4: [[2, 2], [4, 1]]}


def exchanged(x):
    """Hidden values that depend on those of the other of two replicas, by all exchanges."""
    x += 0.1 * tpu_ops.collective_permute(x, [[0, 1], [1, 0]])
    return x + 0.1 * tpu_ops.all_to_all(
        x, concat_dimension=0, split_dimension=0, split_count=2, group_assignment=[[0, 1]]
    )


def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features, UNITS, activation=tf.nn.relu)
    hidden = tf.layers.dense(hidden, UNITS, activation=tf.nn.relu)
    hidden = tf.layers.dropout(hidden, 0.1, training=mode == tpu.ModeKeys.TRAIN)
    if mode == tpu.ModeKeys.TRAIN:
        hidden = exchanged(hidden)
    prediction = tf.layers.dense(hidden, 1)
    if mode == tpu.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"y": prediction})
    loss = tf.reduce_mean((prediction - labels) ** 2)
    optimizer = tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.001, 0.9))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = (lambda y, p: {"mae": tf.metrics.mean_absolute_error(y, p)}, [labels, prediction])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=metrics)


def examples(columns):
    x = np.random.RandomState(0).normal(size=(128, columns)).astype(np.float32)
    return x, x.sum(axis=1, keepdims=True) ** 2


def input_fn(params, columns=8):
    dataset = tf.data.Dataset.from_tensor_slices(examples(columns))
    return dataset.repeat().batch(params["batch_size"], drop_remainder=True)


def predict_input_fn(params):
    return tf.data.Dataset.from_tensor_slices(examples(8)[0][:30]).batch(params["batch_size"])


def make(model_dir, cores, *, partition=None, replicas=2, model=model_fn, **kwargs):
    config = tpu.RunConfig(
        model_dir=str(model_dir),
        runtime="jax",
        tf_random_seed=3,
        save_summary_steps=0,
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=kwargs.pop("loop", 1),
            num_shards=replicas,
            num_cores_per_replica=None if cores == 1 else cores,
            per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2,
            input_partition_dims=partition,
        ),
        **kwargs,
    )
    return tpu.TPUEstimator(
        model,
        config=config,
        params={},
        train_batch_size=16,
        eval_batch_size=16,
        predict_batch_size=16,
    )


class Observer(tf.train.SessionRunHook):
    """Keeps the losses, the kernel as a session shows it, and where variables are."""

    def __init__(self):
        self.losses = []

    def begin(self):
        self._kernel = next(v for v in tf.global_variables() if v.op.name == "dense_1/kernel")
        self._loss = tf.get_collection(tf.GraphKeys.LOSSES)[-1]

    def after_create_session(self, session, coord):
        self._store = session.store

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self.losses.append(run_values.results)
        names = [n for n in self._store if n.startswith("dense")]
        self.arrays = dict(zip(names, self._store.take(names), strict=True))

    def end(self, session):
        self.kernel = session.run(self._kernel)


@dataclasses.dataclass
class Trained:
    losses: list
    variables: dict
    observer: Observer


def train(directory, cores, steps=5, **kwargs):
    estimator, observer = make(directory, cores, **kwargs), Observer()
    estimator.train(input_fn, max_steps=steps, hooks=[observer])
    return estimator, Trained(observer.losses, variables(estimator), observer)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An estimator of replicas of one device each, and what it trained."""
    return train(tmp_path_factory.mktemp("whole"), 1)


def assert_same(found, expected):
    np.testing.assert_allclose(found.losses, expected.losses, rtol=TOLERANCE)
    assert found.variables.keys() == expected.variables.keys()
    for name, value in expected.variables.items():
        atol = TOLERANCE * np.abs(value).max()
        np.testing.assert_allclose(found.variables[name], value, atol=atol, err_msg=name)


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """`split(cores)`: an estimator of replicas of so many devices, and what it trained."""

    @functools.cache
    def of(cores):
        return train(tmp_path_factory.mktemp("split"), cores, partition=PARTITIONS[cores])

    return of


@pytest.mark.parametrize("cores", [pytest.param(2, marks=pytest.mark.full), 4])
def test_results_are_those_of_whole_replicas(cores, split, whole):
    expected_estimator, expected = whole
    estimator, found = split(cores)
    assert_same(found, expected)
    results = [e.evaluate(input_fn, steps=2) for e in (estimator, expected_estimator)]
    assert results[0] == pytest.approx(results[1], rel=TOLERANCE)
    predictions = [
        [p["y"] for p in e.predict(predict_input_fn)] for e in (estimator, expected_estimator)
    ]
    assert len(predictions[0]) == 30
    np.testing.assert_allclose(*predictions, rtol=1e-4)


def test_a_device_holds_its_share_and_hooks_see_whole_variables(split):
    _, found = split(4)
    arrays = found.observer.arrays
    first = jax.devices()[0]
    of_first = sum(
        shard.data.nbytes
        for array in arrays.values()
        for shard in array.addressable_shards
        if shard.device == first
    )
    assert of_first < 0.3 * sum(array.nbytes for array in arrays.values())
    for name in ("dense_1/kernel", "dense_1/kernel/Momentum"):
        assert {s.data.shape for s in arrays[name].addressable_shards} == {(UNITS, UNITS // 4)}
    assert found.observer.kernel.shape == (UNITS, UNITS)
    np.testing.assert_array_equal(found.observer.kernel, found.variables["dense_1/kernel"])


def trained_by_adam(directory, cores, dtype):
    def variable(name, shape, scale):
        value = scale * np.random.RandomState(len(name)).normal(size=shape)
        return tf.get_variable(name, initializer=tf.constant(value, dtype))

    def attending(features, labels, mode, params):
        hidden = tf.nn.relu(tf.matmul(tf.cast(features, dtype), variable("in", [8, UNITS], 0.3)))
        scores = tf.matmul(hidden, variable("scores", [UNITS, UNITS], 0.05))
        hidden *= tf.nn.softmax(scores + variable("unseen", [1], 0.1))  # a shift changes nothing
        prediction = tf.matmul(hidden, variable("out", [UNITS, 1], 0.3))
        loss = tf.reduce_mean((prediction - tf.cast(labels, dtype)) ** 2)
        optimizer = tf.train.AdamOptimizer(0.01)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make(directory, cores, replicas=1, loop=10, model=attending)
    estimator.train(input_fn, max_steps=10)
    names = [n for n in estimator.get_variable_names() if n in ("in", "scores", "out", "unseen")]
    return {name: estimator.get_variable_value(name) for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [(tf.float64, 1e-9), (tf.float32, 1e-4)])
def test_adam_differs_by_rounding(tmp_path, dtype, tolerance):
    """Gradients that are zero but for rounding take whole steps of Adam's rate, in float32."""
    whole, split = (trained_by_adam(tmp_path / str(cores), cores, dtype) for cores in (1, 2))
    assert len(whole) == 4
    if dtype == tf.float32:
        del whole["unseen"]
    for name, value in whole.items():
        np.testing.assert_allclose(split[name], value, rtol=0, atol=tolerance, err_msg=name)


def test_training_goes_on_from_a_checkpoint_of_whole_replicas(tmp_path):
    train(tmp_path / "1", 1, steps=2)
    shutil.copytree(tmp_path / "1", tmp_path / "2")
    found = [train(tmp_path / str(cores), cores, steps=5)[1] for cores in (1, 2)]
    assert len(found[0].losses) == 3
    assert_same(*found)


def test_a_hook_assigns_a_whole_variable(tmp_path):
    class Assigns(Observer):
        def begin(self):
            super().begin()
            self._zero = self._kernel.assign(np.zeros([UNITS, UNITS], np.float32))

        def after_create_session(self, session, coord):
            super().after_create_session(session, coord)
            session.run(self._zero)

    found = []
    for cores in (1, 2):
        hook = Assigns()
        make(tmp_path / str(cores), cores).train(input_fn, max_steps=3, hooks=[hook])
        found.append(hook.losses)
    np.testing.assert_allclose(*found, rtol=TOLERANCE)


def test_many_steps_in_one_dispatch(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(Steps, "most_for", lambda self, steps: min(steps, 5))
    _, found = train(tmp_path, 2, loop=5)
    assert len(found.losses) == 1
    found.losses = whole[1].losses[:4] + found.losses
    assert_same(found, whole[1])


def test_dimensions_that_cannot_be_split_evenly_stay_whole(tmp_path, caplog):
    losses = []
    for cores, partition in ((1, None), (2, [[1, 2], None])):
        observer = Observer()
        estimator = make(tmp_path / str(cores), cores, partition=partition)
        estimator.train(lambda params: input_fn(params, columns=7), max_steps=2, hooks=[observer])
        losses.append(observer.losses)
    np.testing.assert_allclose(*losses, rtol=TOLERANCE)
    assert "dimension 1 of" in caplog.text
    assert "of size 7, in 2 parts" in caplog.text


def summing_model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features, UNITS, activation=tf.nn.relu)
    prediction = tf.layers.dense(tf.layers.dense(hidden, UNITS), 1)
    loss = tf.reduce_mean((prediction - labels) ** 2)
    optimizer = tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.001, 0.9))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


PAIRS = [(replicas, cores) for replicas in (1, 2, 4, 8) for cores in (1, 2, 4, 8)]
PAIRS = [pair for pair in PAIRS if pair[0] * pair[1] <= 8]
TOPOLOGIES = {1: "v5e:1x1", 2: "v5e:1x2", 4: "v5e:2x2", 8: "v5e:2x4"}


def marked(pair):
    """One replica of several devices always, some pairs in `.ci/run`, all in `.ci/full`."""
    if pair == (1, 2):
        return pytest.param(*pair)
    often = pair in [(2, 2), (1, 4), (2, 4)]
    return pytest.param(*pair, marks=pytest.mark.slow if often else pytest.mark.full)


@pytest.mark.parametrize(("replicas", "cores"), [marked(pair) for pair in PAIRS])
def test_what_preflight_says_compiles_runs(tmp_path, monkeypatch, replicas, cores):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = [
        make(
            tmp_path / str(n),
            cores if n else 1,
            replicas=replicas if n else 1,
            loop=2,
            model=summing_model_fn,
            partition=[[min(cores, 8), 1], [cores, 1]] if n and replicas == 1 < cores else None,
        )
        for n in range(2)
    ]
    [report] = made[1].preflight(input_fn, TOPOLOGIES[replicas * cores]).reports
    assert (report.verdict, report.replicas) == (Verdict.FITS, replicas)
    kernels = []
    for estimator in made:
        estimator.train(input_fn, max_steps=4)
        kernels.append(estimator.get_variable_value("dense_1/kernel"))
    np.testing.assert_allclose(*kernels, atol=TOLERANCE * np.abs(kernels[0]).max())
