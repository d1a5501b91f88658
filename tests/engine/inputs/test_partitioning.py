import numpy as np
import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.inputs import partition_dims

IMAGES = tf.TensorSpec([8, 6, 6, 3])
LABELS = tf.TensorSpec([8], tf.int32)


@pytest.mark.parametrize(
    ("features", "labels", "dims", "expected"),
    [
        (IMAGES, LABELS, [[1, 2, 2, 1]], [[1, 2, 2, 1], None]),
        (IMAGES, LABELS, [[1, 4, 1, 1], None], [[1, 4, 1, 1], None]),
        (IMAGES, None, [[1, 1, 1, 1]], [[1, 1, 1, 1]]),
        (
            {"b": IMAGES, "a": LABELS},
            LABELS,
            [{"a": None, "b": [2, 2, 1, 1]}, [4]],
            [None, [2, 2, 1, 1], [4]],
        ),
        ((IMAGES, IMAGES), None, [([1, 2, 2, 1], None)], [[1, 2, 2, 1], None]),
    ],
)
def test_dims_by_tensor(features, labels, dims, expected):
    assert partition_dims(features, labels, dims, 4) == expected


@pytest.mark.parametrize(
    ("features", "labels", "dims", "message"),
    [
        ({"a": IMAGES}, None, [{"b": None}], r"\[0\] mismatched feature keys. Expected \['a'\]"),
        (IMAGES, {"a": LABELS}, [None, {"b": None}], r"\[1\] mismatched label keys"),
        ((IMAGES, IMAGES), None, [(None,)], r"\[0\] mismatched the structure of features"),
        (IMAGES, None, [[1, 3, 1, 1]], r"dim = \[1, 3, 1, 1\], num_cores_per_replica = 4"),
        (IMAGES, None, [[1, -4, -1, 1]], "All input partition dims must be >= 1"),
        (IMAGES, None, [[2, 2]], "must have the same number of dimensions as the `Tensor`"),
    ],
)
def test_refused(features, labels, dims, message):
    with pytest.raises(ValueError, match=message):
        partition_dims(features, labels, dims, 4)


def estimator(directory, dims):
    def model_fn(features, labels, mode, params):
        loss = tf.reduce_mean(features) + 0 * tf.reduce_sum(tf.cast(labels, tf.float32))
        weight = tf.compat.v1.get_variable("weight", [], initializer=tf.zeros_initializer())
        loss += weight**2
        step = tf.compat.v1.train.get_global_step()
        optimizer = tpu.CrossShardOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    tpu_config = tpu.TPUConfig(
        num_cores_per_replica=2,
        per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2,
        input_partition_dims=dims,
    )
    config = tpu.RunConfig(model_dir=str(directory), tpu_config=tpu_config)
    return tpu.TPUEstimator(model_fn, config=config, train_batch_size=8)


def input_fn(params):
    images = np.ones([params["batch_size"], 7, 6, 3], np.float32)  # 7 rows on 2 cores: uneven
    labels = np.zeros([params["batch_size"]], np.int32)
    return tf.data.Dataset.from_tensors((images, labels)).repeat()


def test_without_a_tpu_each_replica_computes_whole_tensors(tmp_path, caplog):
    caplog.set_level("INFO", logger="tensorflow")
    est = estimator(tmp_path, [[1, 2, 1, 1], None])
    est.train(input_fn, max_steps=3)
    assert est.get_variable_value("global_step") == 3
    assert "each replica computes whole tensors" in caplog.text


def test_the_structure_is_checked_before_training(tmp_path):
    with pytest.raises(ValueError, match=r"num_cores_per_replica = 2"):
        estimator(tmp_path, [[1, 3, 1, 1]]).train(input_fn, max_steps=3)
