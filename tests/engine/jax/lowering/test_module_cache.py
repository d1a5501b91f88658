import tensorflow as tf

from tpu_estimator_compat.engine.jax.lowering import module_cache
from tpu_estimator_compat.engine.jax.lowering.replica_step import replica_step
from tpu_estimator_compat.engine.step.plan import StepPlan


def name(units=4, dtype=tf.float32, called="w"):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(dtype, [2, 8])
        weights = tf.compat.v1.get_variable(called, [8, units], dtype, use_resource=True)
        loss = tf.reduce_sum(x @ weights)
    plan = StepPlan(graph, tf.TensorSpec([2, 8], dtype), [x], fetches=(loss,), loss=loss)
    return module_cache.name_of(replica_step(plan, 1), {})


def test_variables_of_another_shape_are_another_step():
    assert name() == name()
    assert len({name(), name(units=5), name(dtype=tf.float64), name(called="v")}) == 4
