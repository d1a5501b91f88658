"""What a step on JAX's devices is told of the replica that runs it."""

import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import on
from support.legacy_models import make_model_fn, train_input_fn
from tensorflow.compiler.tf2xla.python import xla


@pytest.mark.parametrize("where", ["model_fn", "branch", "loop"])
@pytest.mark.parametrize("runtime", ["tensorflow", "jax"])
def test_each_knows_its_number(tmp_path, runtime, where):
    seen = []

    def number():
        if where == "branch":
            step = tf.train.get_global_step()
            return tf.cond(step >= 0, xla.replica_id, lambda: tf.constant(9))
        if where == "loop":
            return tf.while_loop(
                lambda i, total: i < 3,
                lambda i, total: (i + 1, total + xla.replica_id()),
                [tf.constant(0), tf.constant(0)],
                maximum_iterations=3,
            )[1]
        return xla.replica_id()

    def spec_of():
        def host_call(numbers):
            return tf.py_func(lambda n: seen.append(n.tolist()), [numbers], [])

        return host_call, [tf.reshape(number(), [1])]

    model_fn = make_model_fn(host_call=spec_of)
    on(runtime, 4, tmp_path, model_fn).train(train_input_fn, max_steps=2)
    times = 3 if where == "loop" else 1
    assert seen == [[0, times, 2 * times, 3 * times]] * 2
