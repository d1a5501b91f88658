"""What runs a plan, by itself: n steps, the end of data, NaN, other fetches, host calls."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.program import graph_building
from tpu_estimator_compat.program.host_placeholders import HostPlaceholders
from tpu_estimator_compat.program.session import GraphSession
from tpu_estimator_compat.program.step_plan import StepPlan
from tpu_estimator_compat.program.variables import VariableStore
from tpu_estimator_compat.runtime import eager
from tpu_estimator_compat.session.replica_runner import ReplicaRunner

NAN = float("nan")


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
            self.loss = tf.reduce_mean(x) * self.scale
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
        self.runner = ReplicaRunner(self.plan, self.store, notes_before=True)
        self.session = GraphSession(self.graph, self.store)
        self.session.run([v.initializer for v in variables])
        self.seen = seen

    def iterator(self, *values):
        """One element per step and replica: twice the value."""
        strategy = self.store.strategy
        with eager.eager_mode():
            rows = tf.constant(values, tf.float32)[:, tf.newaxis] * [1.0, 1.0]
            data = tf.compat.v2.data.Dataset.from_tensor_slices(rows)
            if strategy.num_replicas_in_sync == 1:
                return iter(data)
            return iter(strategy.distribute_datasets_from_function(lambda context: data))

    def read(self, variable):
        self.runner.finish_host_calls()
        return float(self.session.run(variable))


def test_n_steps(strategy):
    steps = Steps(strategy, 1)
    result = steps.runner.run(steps.iterator(1, 2, 3, 4), 3)
    assert (result.steps, float(result.loss), result.loss_sum) == (3, 3, 6)
    assert (int(result.counter), int(result.counter_before)) == (3, 2)
    assert (result.exhausted, result.stopped_by_nan) == (False, False)
    assert (steps.read(steps.total), steps.read(steps.seen)) == (6, 12)


def test_the_loss_is_the_mean_over_replicas(strategy):
    steps = Steps(strategy, 2)
    result = steps.runner.run(steps.iterator(1, 3, 5, 9), 2)
    assert (result.steps, float(result.loss), result.loss_sum) == (2, 7, 9)
    assert (steps.read(steps.total), steps.read(steps.seen)) == (6, 36)  # the first one's, and all


def test_the_data_ends(strategy):
    steps = Steps(strategy, 1)
    iterator = steps.iterator(1, 2)
    result = steps.runner.run(iterator, 5)
    assert (result.steps, result.exhausted) == (2, True)
    assert steps.runner.run(iterator, 5).steps == 0
    assert steps.read(steps.step) == 2


@pytest.mark.parametrize(("stop", "made"), [(True, 2), (False, 4)])
def test_nan(strategy, stop, made):
    steps = Steps(strategy, 1, stop_on_nan=stop)
    result = steps.runner.run(steps.iterator(1, NAN, 3, 4), 4)
    assert (result.steps, result.stopped_by_nan) == (made, stop)
    assert steps.read(steps.step) == made


def test_a_step_with_other_fetches(strategy):
    steps = Steps(strategy, 1)
    iterator = steps.iterator(1, 2, 3)
    [doubled] = steps.runner.run_once(iterator, [steps.doubled], [])
    np.testing.assert_array_equal(doubled, [2, 2])
    assert steps.read(steps.step) == 0  # no target was asked for
    fed = [(steps.scale, np.float32(10))]
    [loss] = steps.runner.run_once(iterator, [steps.loss], steps.plan.targets, fed)
    assert loss == 20
    assert (steps.read(steps.step), steps.read(steps.seen)) == (1, 4)
    steps.runner.run_once(iterator, [steps.loss], [])
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        steps.runner.run_once(iterator, [steps.loss], [])


def test_elements_are_collected(strategy):
    steps = Steps(strategy, 1)
    assert steps.runner.can_collect([steps.doubled])
    assert not steps.runner.can_collect([steps.loss])  # it has no batch dimension
    assert not Steps(strategy, 2).runner.can_collect([steps.doubled])
    iterator = steps.iterator(1, 2, 3)
    found = [steps.runner.collect(iterator, [steps.doubled], 2) for _ in range(2)]
    assert [[list(values) for [values] in each] for each in found] == [[[2, 2], [4, 4]], [[6, 6]]]


def test_host_calls_of_some_steps(strategy):
    """In every so manieth step of a loop, counted from its begin."""
    steps = Steps(strategy, 1, host_calls_every=2)
    iterator = steps.iterator(1, 10, 100, 1000, 10000)
    steps.runner.begin_loop()
    steps.runner.run(iterator, 3)
    assert steps.read(steps.seen) == 2 * 101
    steps.runner.begin_loop()
    steps.runner.run(iterator, 2)
    assert steps.read(steps.seen) == 2 * 1101
