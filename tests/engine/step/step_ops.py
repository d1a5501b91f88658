"""Tensors of a step, and plans of steps that compute some of them."""

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.step.host_calls import HostPlaceholders
from tpu_estimator_compat.engine.step.plan import StepPlan


class StepOps:
    """Tensors by name; those sent to the host are `over_replicas` and `scalars`."""

    def __init__(self, graph, replicas=2):
        x = tf.placeholder(tf.float32, [4], name="x")
        variable = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        self.graph = graph
        self.host = HostPlaceholders(graph, replicas, same_on_all_replicas=False)
        self.product = x * variable
        self.over_replicas = self.host.over_replicas(self.product)
        self.total = tf.reduce_sum(x)
        self.scalars = self.host.over_replicas(tf.reshape(self.total, [1]))
        with tf.control_dependencies([x]):
            after_input = tf.constant(1.0)
        self.tensors = {
            "x": x,
            "from_input": tf.reduce_sum(x) * variable,
            "after_input": after_input,
            "on_host": tf.reduce_mean(self.over_replicas),
            "on_host_and_input": tf.reduce_mean(self.over_replicas) + tf.reduce_sum(x),
            "of_scalar": self.scalars[0] + 1,
            "of_variable": variable + 1,
            "named": tf.constant(2.0, name="named"),
        }

    def plan(self, **fields):
        return StepPlan(
            self.graph,
            tf.TensorSpec([4]),
            [self.tensors["x"]],
            loss=self.tensors["from_input"],
            replica_ops=frozenset({"named"}),
            host_placeholders=self.host.made,
            **fields,
        )
