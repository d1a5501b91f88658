"""What the host does of a step on JAX's devices, when it looks at their variables."""

import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import on
from support.legacy_models import make_model_fn, train_input_fn


@pytest.mark.parametrize("runtime", ["tensorflow", "jax"])
def test_a_host_call_that_reads_a_variable_sees_it_after_its_step(tmp_path, runtime):
    seen = []

    def host_call(step):
        read = tf.train.get_global_step().read_value()
        return tf.py_func(lambda a, b: seen.append((int(a[0]), int(b))), [step, read], [])

    def spec_of():
        return host_call, [tf.reshape(tf.train.get_global_step(), [1])]

    on(runtime, 1, tmp_path, make_model_fn(host_call=spec_of)).train(train_input_fn, max_steps=7)
    assert [after for _, after in seen] == list(range(1, 8))


def test_a_host_call_that_writes_a_variable_is_heard(tmp_path):
    """The next step sees what it wrote."""

    def train_op(loss, params):
        from tpu_estimator_compat import CrossShardOptimizer

        rate = tf.get_variable("rate", [], initializer=tf.zeros_initializer(), trainable=False)
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer(), trainable=False)
        optimizer = CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
        minimized = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.group(minimized, total.assign_add(rate))

    def host_call(step):
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            rate = tf.get_variable("rate", [])
        return rate.assign(tf.cast(step[0], tf.float32) + 1.0)

    def spec_of():
        return host_call, [tf.reshape(tf.train.get_global_step(), [1])]

    def model_fn(features, labels, mode, params):
        return make_model_fn(train_op)(features, labels, mode, params)._replace(
            host_call=spec_of() if mode == "train" else None
        )

    estimator = on("jax", 2, tmp_path, model_fn)
    estimator.train(train_input_fn, max_steps=4)
    rate, total = (estimator.get_variable_value(n) for n in ("rate", "total"))
    assert rate in (4.0, 5.0)  # of the step before or after it was raised
    assert total == sum([rate - 3, rate - 2, rate - 1])  # those of the three steps before
