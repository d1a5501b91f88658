import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import RUNTIMES, on
from support.legacy_models import adam, logits_of, make_model_fn, train_input_fn
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python.tpu.ops import tpu_ops

import tpu_estimator_compat as tpu

EXCHANGES = {
    "sums in pairs": lambda x: tf.tpu.cross_replica_sum(x, [[0, 2], [1, 3]]),
    "permuted": lambda x: tpu_ops.collective_permute(x, [[0, 1], [1, 2], [2, 3]]),
    "all to all": lambda x: tpu_ops.all_to_all(x, 1, 0, 2, [[0, 2], [1, 3]]),
    "in both branches": lambda x: tf.cond(
        tf.train.get_global_step() > 1,
        lambda: tf.tpu.cross_replica_sum(x),
        lambda: tf.tpu.cross_replica_sum(2.0 * x),
    ),
    "in a loop": lambda x: tf.while_loop(
        lambda i, _: i < 3,
        lambda i, v: (i + 1, tf.tpu.cross_replica_sum(v) / 2.0),
        (0, x),
        maximum_iterations=3,
    )[1],
}


def test_exchanges(tmp_path):
    seen = {}

    def model_fn(features, labels, mode, params):
        given = features
        exchanged = {name: f(given) for name, f in EXCHANGES.items()}
        exchanged = {k: tf.broadcast_to(tf.reduce_sum(v), [1]) for k, v in exchanged.items()}
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        step = tf.reshape(tf.train.get_global_step(), [1])

        def host_call(**given):
            names = sorted(given)

            def note(*values):
                at = dict(zip(names, values, strict=True))
                seen[int(at.pop("step")[0])] = at

            return tf.py_func(note, [given[name] for name in names], [])

        tensors = {k.replace(" ", "_"): v for k, v in exchanged.items()}
        tensors |= {"step": step, "own": tf.reshape(tf.reduce_sum(given), [1])}
        tensors["halves"] = tf.reshape(tf.reduce_sum(given[4:]), [1])
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=adam(loss, params), host_call=(host_call, tensors)
        )

    on("jax", 4, tmp_path, model_fn, train_batch_size=32).train(train_input_fn, steps=4)
    assert sorted(seen) == [0, 1, 2, 3] or sorted(seen) == [1, 2, 3, 4]
    for step, at in seen.items():
        own, right = at["own"], at["halves"]
        left = own - right
        pairs = own[[0, 1, 0, 1]] + own[[2, 3, 2, 3]]
        np.testing.assert_allclose(at["sums_in_pairs"], pairs, 1e-4, 1e-4)
        np.testing.assert_allclose(at["permuted"], [0, *own[:3]], 1e-4, 1e-4)
        swapped = [left[0] + left[2], left[1] + left[3], right[0] + right[2], right[1] + right[3]]
        np.testing.assert_allclose(at["all_to_all"], swapped, 1e-4, 1e-4)
        total = own.sum()
        first = min(seen)
        factor = 1 if step - first > 1 else 2
        np.testing.assert_allclose(at["in_both_branches"], [factor * total] * 4, 1e-4, 1e-4)
        np.testing.assert_allclose(at["in_a_loop"], [total * 2] * 4, 1e-4, 1e-4)


def numbers_of():
    """The replica's number as a model_fn, a branch and a loop (three times) know it."""
    step = tf.train.get_global_step()
    looped = tf.while_loop(
        lambda i, total: i < 3,
        lambda i, total: (i + 1, total + xla.replica_id()),
        [tf.constant(0), tf.constant(0)],
        maximum_iterations=3,
    )[1]
    branched = tf.cond(step >= 0, xla.replica_id, lambda: tf.constant(9))
    return xla.replica_id(), branched, looped


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_each_replica_knows_its_number(tmp_path, runtime):
    seen = []

    def spec_of():
        def host_call(*numbers):
            return tf.py_func(lambda *n: seen.append([x.tolist() for x in n]), numbers, [])

        return host_call, [tf.reshape(number, [1]) for number in numbers_of()]

    model_fn = make_model_fn(host_call=spec_of)
    on(runtime, 4, tmp_path, model_fn).train(train_input_fn, max_steps=2)
    assert seen == [[[0, 1, 2, 3], [0, 1, 2, 3], [0, 3, 6, 9]]] * 2
