"""A small plan of steps, what runs it, and data for it; and steps without a plan, for loops."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.engine.capture.replica_context import reported_loss
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.loop.replica_runner import ReplicaRunner
from tpu_estimator_compat.engine.loop.runner import RunLimits
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_calls import HostPlaceholders
from tpu_estimator_compat.engine.step.plan import StepPlan


@dataclasses.dataclass
class PlainStep:
    """A step for loops, of a function from an element to outputs; the first one is the loss."""

    build: Callable[[Any], list[tf.Tensor]]
    trains: bool = True
    may_run_on_one_thread: bool = False
    loss_dtype = tf.float32
    replicas, size, has_branches = 1, 0, True
    queue = counter = None

    def __call__(self, data):
        return self.build(data)

    def contents(self):
        return None


class Steps:
    """A step adds its element to `total`; its loss is the element's mean, over replicas."""

    def __init__(self, strategy, replicas, **fields):
        self.graph, self.store = tf.Graph(), VariableStore(strategy(replicas))
        with graph_building.capture_semantics(), self.graph.as_default():
            self.step = tf.train.create_global_step()
            total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
            seen = tf.get_local_variable("seen", [], initializer=tf.zeros_initializer())
            x = tf.placeholder(tf.float32, [2], name="x")
            self.scale = tf.placeholder_with_default(1.0, [], name="scale")
            self.total, self.x = total, x
            host = HostPlaceholders(self.graph, replicas, same_on_all_replicas=False)
            self.call = tf.assign_add(seen, tf.reduce_sum(host.over_replicas(x))).op
            self.mean = tf.reduce_mean(x)
            self.loss = reported_loss(self.mean * self.scale, replicas)
            with tf.control_dependencies([self.loss]):  # as optimizers count: not without data
                count = tf.assign_add(self.step, 1).op
            targets = [tf.assign_add(total, x[0]).op, count, self.call]
            self.plan = StepPlan(
                self.graph,
                tf.TensorSpec([2]),
                [x],
                [self.loss],
                targets,
                loss=self.loss,
                replica_ops=frozenset(op.name for op in targets[:2]),
                host_placeholders=host.made,
                host_calls=frozenset({self.call.name}),
                **fields,
            )
            self.doubled = x * 2
            variables = [*tf.global_variables(), *tf.local_variables()]
        self.runner = ReplicaRunner(self.plan, self.store, RunLimits(reads_after_loop=False))
        self.session = GraphSession(self.graph, self.store)
        self.session.run([v.initializer for v in variables])
        self.seen = seen

    def data(self, *values):
        """One element per step and replica: twice the value."""
        with eager.eager_mode():
            rows = tf.constant(values, tf.float32)[:, tf.newaxis] * [1.0, 1.0]
            return tf.compat.v2.data.Dataset.from_tensor_slices(rows)

    def iterator(self, *values):
        strategy, data = self.store.strategy, self.data(*values)
        with eager.eager_mode():
            if strategy.num_replicas_in_sync == 1:
                return iter(data)
            return iter(strategy.distribute_datasets_from_function(lambda context: data))

    def read(self, variable):
        self.runner.finish_host_calls()
        return float(self.session.run(variable))
