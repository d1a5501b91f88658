import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu


@pytest.mark.parametrize(
    ("loop", "every", "told"), [(5, 10, ["5", "15"]), (3, 4, ["3", "9", "15", "20"])]
)
def test_with_use_tpu_the_loss_is_told_with_the_step_after_the_loop(
    tmp_path, caplog, loop, every, told
):
    def model_fn(features, labels, mode, params):
        weight = tf.compat.v1.get_variable("weight", initializer=0.0)
        loss = tf.reduce_mean((features * weight - labels) ** 2)
        optimizer = tpu.CrossShardOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.01))
        train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params):
        return tf.data.Dataset.from_tensors(([1.0] * 4, [2.0] * 4)).repeat()

    config = tpu.RunConfig(
        model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(loop), log_step_count_steps=every
    )
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    tf.get_logger().propagate = True
    tf.compat.v1.logging.set_verbosity("INFO")
    with caplog.at_level("INFO", logger="tensorflow"):
        estimator.train(input_fn, steps=20)
    steps = [r.getMessage() for r in caplog.records if r.getMessage().startswith("loss = ")]
    assert [line.partition("step = ")[2].split()[0] for line in steps] == told
