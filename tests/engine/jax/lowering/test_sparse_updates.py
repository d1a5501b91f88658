"""Sparse updates on JAX's devices, by TensorFlow's rules: every optimizer, rows untouched too."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import RUNTIMES, on, variables

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.jax.lowering import sparse_formulas
from tpu_estimator_compat.tools.preflight.report import Verdict

ROWS, WIDTH = 50, 4
TOLERANCE = 2e-6

L1_L2 = {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.01}
OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "AdagradDA": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_global_step(), **L1_L2),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1, **L1_L2),
    "FtrlShrinkage": lambda: tf.train.FtrlOptimizer(
        0.1, l2_shrinkage_regularization_strength=0.01, **L1_L2
    ),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "CenteredRMSProp": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
    "Adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "ProximalAdagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, **L1_L2),
    "ProximalGradientDescent": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, **L1_L2),
}


def input_fn(params):
    """Ids that come several times in a batch; those from 40 on never come."""
    random = np.random.RandomState(0)
    ids = random.randint(0, 40, [64, 3]).astype(np.int64)
    labels = random.normal(size=64).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((ids, labels)).repeat()
    return data.batch(params["batch_size"], drop_remainder=True)


def loss_of(name, ids, labels):
    table = np.random.RandomState(len(name)).normal(size=[ROWS, WIDTH]).astype(np.float32)
    looked_up = tf.nn.embedding_lookup(tf.get_variable(name, initializer=table), ids)
    return tf.reduce_mean((tf.reduce_sum(looked_up, [1, 2]) - labels) ** 2)


def spec(mode, loss, *updates):
    with tf.control_dependencies(updates):
        step = tf.assign_add(tf.train.get_global_step(), 1)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=step)


def all_model_fn(features, labels, mode, params):
    """A table for each optimizer; ids of 32 bits for every second."""
    losses = {
        name: loss_of(name, tf.cast(features, (tf.int32, tf.int64)[i % 2]), labels)
        for i, name in enumerate(OPTIMIZERS)
    }
    updates = [OPTIMIZERS[name]().minimize(loss) for name, loss in losses.items()]
    return spec(mode, tf.add_n(list(losses.values())), *updates)


def trained(runtime, model_dir, model_fn, steps=6):
    estimator = on(runtime, 1, model_dir, model_fn)
    estimator.train(input_fn, steps=steps)
    return variables(estimator)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        atol = TOLERANCE * np.abs(value).max()
        np.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=name)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Variables of all optimizers, on TensorFlow's runtime and on JAX's."""
    return [trained(r, tmp_path_factory.mktemp(r), all_model_fn) for r in RUNTIMES]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer(both, name):
    expected, found = ({n: v for n, v in side.items() if n.split("/")[0] == name} for side in both)
    assert_same(found, expected)
    begun = np.random.RandomState(len(name)).normal(size=[ROWS, WIDTH]).astype(np.float32)
    moved = np.abs(expected[name] - begun).max(axis=1) > 0
    assert moved[:40].sum() > 20
    if name != "AdagradDA":  # computes a variable from its slots, whatever its value was
        np.testing.assert_array_equal(found[name][40:], expected[name][40:])


def test_every_formula_is_of_an_op():
    for name in sparse_formulas.FORMULAS:
        assert hasattr(tf.raw_ops, f"ResourceSparseApply{name}")


def one_update(features, labels):
    """A loss; for an op that updates its table and a slot, the arguments; the gradient."""
    loss = loss_of("table", features, labels)
    table = tf.trainable_variables()[0]
    slot = tf.get_variable("slot", [ROWS, WIDTH], initializer=tf.ones_initializer())
    given = {"var": table.handle, "accum": slot.handle, "lr": 0.1}
    return loss, given, tf.gradients(loss, table)[0]


@pytest.mark.parametrize("op", ["AdagradV2", "KerasMomentum"])
def test_an_op_that_no_legacy_optimizer_makes(tmp_path, op):
    def model_fn(features, labels, mode, params):
        loss, given, gradient = one_update(features, labels)
        ids, places = tf.unique(gradient.indices)
        grad = tf.math.unsorted_segment_sum(gradient.values, places, tf.shape(ids)[0])
        more = {"epsilon": 1e-3} if op == "AdagradV2" else {"momentum": 0.9, "use_nesterov": True}
        more |= {"grad": grad, "indices": ids}
        update = getattr(tf.raw_ops, f"ResourceSparseApply{op}")(**given, **more)
        return spec(mode, loss, update)

    assert_same(*(trained(r, tmp_path / r, model_fn, 3) for r in reversed(RUNTIMES)))


def test_an_update_every_second_step(tmp_path):
    """In a branch, whose operations are a function's."""

    def model_fn(features, labels, mode, params):
        loss = loss_of("table", features, labels)
        optimizer = tf.train.AdagradOptimizer(0.1)
        pairs = optimizer.compute_gradients(loss)
        optimizer._create_slots([variable for _, variable in pairs])
        update = tf.cond(
            tf.equal(tf.train.get_global_step() % 2, 0),
            lambda: tf.group(optimizer.apply_gradients(pairs)),
            tf.no_op,
        )
        return spec(mode, loss, update)

    assert_same(*(trained(r, tmp_path / r, model_fn, 5) for r in reversed(RUNTIMES)))


def test_ids_that_are_not_distinct_are_refused(tmp_path):
    def model_fn(features, labels, mode, params):
        loss, given, gradient = one_update(features, labels)
        rows = {"grad": gradient.values, "indices": gradient.indices}
        update = tf.raw_ops.ResourceSparseApplyAdagrad(**given, **rows)
        return spec(mode, loss, update)

    with pytest.raises(NotImplementedError, match=r"give it distinct ids from tf\.unique"):
        trained("jax", tmp_path, model_fn)


@pytest.mark.parametrize("places", [tf.int32, tf.int64])
def test_distinct_ids_with_other_users_keep_their_number(tmp_path, places):
    """Their number is asked for; or places have a type that no optimizer asks for."""

    def model_fn(features, labels, mode, params):
        loss = loss_of("table", features, labels)
        table = tf.trainable_variables()[0]
        flat = tf.reshape(features, [-1])
        ids, segments = tf.unique(flat, places)
        rows = tf.ones([tf.size(ids), WIDTH])
        if places == tf.int64:
            ones = tf.ones([flat.shape[0], WIDTH])
            rows = tf.math.unsorted_segment_sum(ones, segments, tf.shape(ids)[0])
        update = tf.raw_ops.ResourceScatterAdd(resource=table.handle, indices=ids, updates=rows)
        return spec(mode, loss, update)

    with pytest.raises(NotImplementedError, match="number of results depends on the data"):
        trained("jax", tmp_path, model_fn)


def test_preflight_finds_nothing_in_them(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    [report] = on("jax", 1, tmp_path / "model", all_model_fn).preflight(input_fn, "v5e:1x1").reports
    assert report.verdict is Verdict.FITS
    assert report.findings == []
