"""What a model_fn asks of `tf.distribute`; the figures are those of TensorFlow 2.15.1.

There, each replica called model_fn, on a MirroredStrategy of two CPUs.
"""

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf2
import tf_keras

import tpu_estimator_compat as tec
import tpu_estimator_compat.v1 as tf

SUM, MEAN = tf2.distribute.ReduceOp.SUM, tf2.distribute.ReduceOp.MEAN
SUMMED, AVERAGED = tf2.VariableAggregation.SUM, tf2.VariableAggregation.MEAN
OF_FIRST = tf2.VariableAggregation.ONLY_FIRST_REPLICA
ON_READ = tf2.VariableSynchronization.ON_READ
here = tf2.distribute.get_replica_context


def by_id(x):
    return x + tf.cast(here().replica_id_in_sync_group, tf.float32)


def branched_by_id(x):
    return tf.cond(tf.equal(here().replica_id_in_sync_group, 1), lambda: x * 2, lambda: x)


def id_in_a_function(x):
    return tf2.function(by_id)(x)


def by_number(x):
    return x * float(here().num_replicas_in_sync)


def has_strategy(x):
    seen = tf2.distribute.get_strategy()
    assert isinstance(seen, tf2.distribute.MirroredStrategy)
    assert here().strategy is seen
    assert len(seen.extended.worker_devices) == 2
    return x * (2.0 if tf2.distribute.has_strategy() else 1.0)


def less_sum(x):
    return x - here().all_reduce("sum", tf.reduce_mean(x)) / 2.0


def less_mean(x):
    return x - tf.stop_gradient(here().all_reduce(MEAN, tf.reduce_mean(x, 0)))


def nested(x):
    values = {"a": tf.reduce_mean(x), "b": [tf.reduce_max(x), tf.reduce_min(x)]}
    found = here().all_reduce(SUM, values)
    return x - found["a"] + found["b"][0] * 0.1 - found["b"][1] * 0.2


def integers(x):
    return x + tf.cast(here().all_reduce(SUM, tf.shape(x, out_type=tf.int64)[0]), tf.float32) * 0.1


def slices(x):
    rows = tf.reshape(here().replica_id_in_sync_group, [1])
    summed = here().all_reduce(SUM, tf.IndexedSlices(x[:1], rows, tf.constant([4, 2])))
    assert isinstance(summed, tf.IndexedSlices)
    return x - tf.convert_to_tensor(summed)


def merged(x):
    def merge(strategy, value, *, and_value):
        assert here() is None
        assert tf2.distribute.in_cross_replica_context()
        return strategy.reduce(SUM, value["a"], axis=None) + 0 * and_value

    return x - here().merge_call(merge, ({"a": tf.reduce_mean(x)},), {"and_value": 3.0})


def merged_rows(x):
    def merge(strategy, value):
        return strategy.reduce(SUM, value, axis=0)

    return x - here().merge_call(merge, args=(x,)) * 0.1


def merged_second(x):
    def merge(strategy, value):
        return strategy.experimental_local_results(value)[1]

    return x - here().merge_call(merge, args=(tf.reduce_mean(x),))


def gathered(x):
    every = here().all_gather(x, axis=0)
    assert every.shape.as_list() == [None, 2]
    return x - tf.reduce_max(every, 0)


def unevenly_gathered(x):
    rows = here().replica_id_in_sync_group + 1
    return x - tf.reduce_sum(here().all_gather(x[:rows], axis=0), 0)


def keras_2_layer(x):
    layer = tf_keras.layers.experimental.SyncBatchNormalization
    return layer(momentum=0.5, name="bn")(x, training=True)


def keras_3_layer(x):
    layer = keras.layers.BatchNormalization
    return layer(momentum=0.5, epsilon=1e-3, name="bn", synchronized=True)(x, training=True)


def update(x):
    weight = tf.get_variable("t", [], initializer=tf.ones_initializer(), trainable=False)

    def merge(strategy, value):
        summed = strategy.extended.reduce_to(SUM, value, weight)
        return strategy.extended.update(weight, lambda v, g: v.assign_add(g), args=(summed,))

    with tf.control_dependencies([here().merge_call(merge, args=(tf.reduce_mean(x),))]):
        return x + 0.1 * weight.read_value()


def written(write, aggregation, synchronization=tf2.VariableSynchronization.AUTO):
    def change(x):
        total = tf.get_variable(
            "t",
            [],
            initializer=tf.ones_initializer(),
            aggregation=aggregation,
            synchronization=synchronization,
            trainable=False,
        )
        with tf.control_dependencies([write(total, tf.reduce_sum(x))]):
            return x + 0.01 * total.read_value()

    return change


def on_one_device(x):
    assert isinstance(tf2.distribute.get_strategy(), tf2.distribute.OneDeviceStrategy)
    assert tf.get_static_value(here().replica_id_in_sync_group) == 0
    return x * (2.0 if tf2.distribute.has_strategy() else 1.0)


def read_by_a_merge_function(x):
    total = tf.get_variable(
        "t", [], initializer=tf.zeros_initializer(), synchronization=ON_READ, aggregation=SUMMED,
        trainable=False,
    )  # fmt: skip
    with tf.control_dependencies([total.assign_add(tf.reduce_sum(x))]):
        read = here().merge_call(lambda strategy, t: strategy.extended.read_var(t), (total,))
        return x + 0.1 * read


def model_fn(features, labels, mode, params):
    """A model, with a weight of its own, for each change of the examples."""
    losses = []
    for name, change in params["changes"].items():
        with tf.variable_scope(name):
            weight = tf.get_variable("w", [2], initializer=tf.ones_initializer())
            outputs = tf.reduce_sum(change(features["x"]) * weight, 1)
            losses.append(tf.reduce_mean(tf.square(outputs - labels)))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(tf.add_n(losses), tf.train.get_global_step())
    return tec.estimator.EstimatorSpec(mode, loss=losses[0], train_op=train_op)


def input_fn():
    x = np.random.RandomState(0).randn(16, 2).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(1) + 1)).batch(4)


def trained(strategy, change, model_dir=None):
    """Values by name, of a training of one model or several."""
    changes = change if isinstance(change, dict) else {"one": change}
    config = tec.estimator.RunConfig(model_dir, train_distribute=strategy)
    estimator = tec.estimator.Estimator(model_fn, config=config, params={"changes": changes})
    estimator.train(input_fn)
    names = estimator.get_variable_names()
    return {name: np.round(estimator.get_variable_value(name), 4).tolist() for name in names}


def weights_are(values, expected):
    assert {name: values[f"{name}/w"] for name in expected} == {
        name: pytest.approx(value, abs=2e-4) for name, value in expected.items()
    }


ON_TWO = [
    (by_id, [0.818, 0.777]),
    (branched_by_id, [0.88, 0.8397]),
    (id_in_a_function, [0.818, 0.777]),
    (by_number, [0.5615, 0.6478]),
    (has_strategy, [0.5615, 0.6478]),
    (less_sum, [1.1318, 0.849]),
    (less_mean, [1.0, 1.0]),
    (nested, [0.8815, 0.8208]),
    (integers, [0.8014, 0.821]),
    (slices, [0.8623, 1.1215]),
    (merged, [0.7636, 0.2862]),
    (merged_rows, [1.0743, 1.0333]),
    (merged_second, [1.0923, 0.7582]),
    (gathered, [0.1769, -0.6331]),
    (unevenly_gathered, [-1.6737, 0.3878]),
    (update, [1.1342, 1.0852]),
    (written(tf.assign_add, SUMMED), [1.1804, 1.0937]),
    (written(tf.assign_sub, AVERAGED), [1.214, 1.0579]),
    (written(tf.assign, OF_FIRST), [1.2031, 1.0691]),
    (read_by_a_merge_function, [0.5091, 0.5407]),
]
LAYERS = [(keras_2_layer, [1.0858, 0.9912]), (keras_3_layer, [1.0858, 0.9912])]
ON_ONE = [
    (on_one_device, [0.9721, 0.5189]),
    (less_sum, [1.3932, 1.0279]),
    (merged, [1.257, 0.6816]),
]


@pytest.mark.parametrize(
    ("devices", "rows"),
    [(2, ON_TWO), (2, LAYERS), (1, ON_ONE)],
    ids=["two replicas", "layers", "one device"],
)
def test_replicas(devices, rows, strategy):
    one = tf2.distribute.OneDeviceStrategy("cpu:0")
    changes = {f"{number}_{change.__name__}": change for number, (change, _) in enumerate(rows)}
    values = trained(one if devices == 1 else strategy(devices), changes)
    weights_are(values, dict(zip(changes, (value for _, value in rows), strict=True)))


def test_a_central_storage_makes_the_same_steps():
    """Its replicas share variables, to which each added its gradients and its step."""
    strategy = tf2.distribute.experimental.CentralStorageStrategy(["cpu:0", "cpu:1"], "cpu:0")
    values = trained(strategy, by_number)
    weights_are(values, {"one": [0.5615, 0.6478]})
    assert values["global_step"] == 2


def test_variables_are_whole_and_the_strategy_is_the_users(strategy):
    """TensorFlow's strategies disable partitioners; estimators take the same one in turn."""

    def partitioned(x):
        halves = tf.fixed_size_partitioner(2)
        weight = tf.convert_to_tensor(tf.get_variable("t", [2], partitioner=halves))
        assert [v.op.name for v in tf.global_variables("one/t")] == ["one/t"]
        return x * weight

    own = strategy(2)
    before = dict(vars(own)), dict(vars(own.extended))
    for _ in range(2):
        trained(own, partitioned)
    assert (vars(own), vars(own.extended)) == before
    with tf2.init_scope():
        assert own.reduce(SUM, own.run(lambda: tf2.constant(2)), axis=None).numpy() == 4


def merging(merge):
    return lambda x: here().merge_call(merge, args=(x,))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda x: tf.cond(x[0, 0] > 0, lambda: less_sum(x), lambda: x), RuntimeError, "`merge_c"),
        (lambda x: tf.map_fn(less_sum, x), RuntimeError, "merge_call .* outside of tf.cond"),
        (lambda x: tf2.function(less_sum)(x), RuntimeError, "defining a new graph or a tf.func"),
        (
            lambda x: tf2.distribute.get_strategy().reduce(SUM, x, axis=0),
            RuntimeError,
            "requires being in cross-replica context",
        ),
        (merging(lambda strategy, x: x * 2), TypeError, "unsupported operand .*'PerReplica' and"),
        (
            merging(lambda strategy, x: strategy.reduce(SUM, 1.5, axis=None)),
            ValueError,
            "non-DistributedValues value 1.5 cannot be reduced",
        ),
        (
            written(lambda total, x: total.assign_add(1.0), SUMMED),
            ValueError,
            "non-DistributedValues value 1.0 cannot be reduced",
        ),
        (lambda x: x + here().all_gather(tf.as_string(x), 0), TypeError, "DataType string"),
    ],
)
def test_what_cannot_be_joined(change, kind, words, strategy):
    with pytest.raises(kind, match=words):
        trained(strategy(2), change)


@pytest.mark.parametrize(
    ("aggregation", "values"), [(SUMMED, [15.8188, 29.6376]), (AVERAGED, [7.9094, 14.8188])]
)
def test_variables_that_are_joined_when_they_are_read(aggregation, values, tmp_path, strategy):
    """Checkpoints have the sum or mean, also those of a training that began with it."""
    for value in values:
        values_now = trained(strategy(2), written(tf.assign_add, aggregation, ON_READ), tmp_path)
        assert values_now["one/t"] == pytest.approx(value, abs=2e-4)


@pytest.mark.parametrize(
    ("reduction", "weight", "losses"),
    [
        (tf.losses.Reduction.SUM, [-0.8807, 1.6845], [8.0, 25.490536]),
        (tf.losses.Reduction.MEAN, [1.2097, 1.0739], [1.0, 0.90048206]),
    ],
)
def test_a_loss_that_is_a_sum_is_summed(reduction, weight, losses, tmp_path, strategy, caplog):
    def train(features, labels, mode):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        outputs = tf.reduce_sum(features["x"] * w, 1)
        loss = tf.losses.mean_squared_error(labels, outputs, reduction=reduction)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tec.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    config = tec.estimator.RunConfig(tmp_path, train_distribute=strategy(2), save_summary_steps=1)
    caplog.set_level(logging.INFO)
    estimator = tec.estimator.Estimator(train, config=config).train(input_fn)
    np.testing.assert_allclose(estimator.get_variable_value("w"), weight, atol=6e-5)
    assert f"Loss for final step: {losses[1]}" in caplog.text
    [events] = tmp_path.glob("events*")
    values = [v for e in tf.train.summary_iterator(str(events)) for v in e.summary.value]
    shown = [v.simple_value for v in values if v.tag == "loss"]
    np.testing.assert_allclose(shown, losses, atol=6e-5)


def test_evaluation(tmp_path, strategy):
    """Metrics of the replica's id, of what replicas join without data, and by hand."""

    def evaluate(features, labels, mode, params):
        if mode != tf.estimator.ModeKeys.EVAL:
            return model_fn(features, labels, mode, params)
        x, replica = features["x"], tf.cast(here().replica_id_in_sync_group, tf.float32)
        total = tf.get_variable(
            "t",
            [],
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
            synchronization=ON_READ,
            initializer=tf.zeros_initializer(),
            aggregation=SUMMED,
            trainable=False,
        )
        metrics = {
            "id": tf.metrics.mean(replica),
            "of id": tf.metrics.mean(x * replica),
            "sum": tf.metrics.mean(here().all_reduce(SUM, tf.constant(2.0))),
            "all": tf.metrics.mean(here().all_gather(x, 0)),
            "by hand": (tf.identity(total), total.assign_add(tf.reduce_sum(x))),
            "auc": tf.metrics.auc(labels > 0, tf.sigmoid(x[:, 0])),
            "rmse": tf.metrics.root_mean_squared_error(labels, x[:, 0]),
        }  # fmt: skip
        return tec.estimator.EstimatorSpec(mode, loss=replica, eval_metric_ops=metrics)

    replicas = strategy(2)
    config = tec.estimator.RunConfig(tmp_path, train_distribute=replicas, eval_distribute=replicas)
    estimator = tec.estimator.Estimator(
        evaluate, config=config, params={"changes": {"one": tf.identity}}
    )
    estimator.train(input_fn)
    results = estimator.evaluate(input_fn)
    expected = {"id": 0.5, "of id": 0.243, "sum": 4.0, "all": 0.4318, "by hand": 13.8188}
    np.testing.assert_allclose(
        [results[name] for name in expected], list(expected.values()), atol=6e-5
    )


def test_an_input_fn_sees_the_strategy_across_replicas(strategy):
    seen = []

    def input_of_both():
        assert here() is None
        seen.append(tf2.distribute.get_strategy().num_replicas_in_sync)
        return input_fn()

    config = tec.estimator.RunConfig(train_distribute=strategy(2))
    estimator = tec.estimator.Estimator(
        model_fn, config=config, params={"changes": {"one": tf.identity}}
    )
    estimator.train(input_of_both, steps=1)
    assert seen == [2]
    assert not tf2.distribute.has_strategy()


def test_with_use_tpu_there_is_no_strategy(strategy):
    def train(features, labels, mode, params):
        assert not tf2.distribute.has_strategy()
        loss = tf.reduce_mean(features["x"] * tf.get_variable("w", [2]))
        optimizer = tec.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tec.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    config = tec.RunConfig(train_distribute=strategy(2))
    estimator = tec.TPUEstimator(train, config=config, use_tpu=True, train_batch_size=8)
    estimator.train(
        lambda params: input_fn().map(lambda x, y: (x, y)).unbatch().batch(4, True), steps=1
    )
