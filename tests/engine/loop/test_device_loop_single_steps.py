"""Steps that are run one by one, for a hook that does not say when it wants control."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat.engine.loop.device_loop import DeviceLoop

STEPS = 60


@pytest.fixture(autouse=True)
def steps_are_small(tuned):
    """However busy the machine is; and the function without a loop is traced at once."""
    tuned(small_step=60.0, tracing=0.0)


class EveryStep(tf.train.SessionRunHook):
    """Notes what it sees; `act(step, session)` is called after each step."""

    def __init__(self, act=lambda step, session: None):
        self.seen = []
        self._act = act

    def begin(self):
        self._fetches = [tf.train.get_global_step(), tf.get_collection(tf.GraphKeys.LOSSES)[-1]]

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        step, loss = run_values.results
        self.seen.append((int(step), float(loss)))
        self._act(int(step), run_context.session)


@pytest.fixture
def single_steps(monkeypatch):
    """How many steps were run without a loop."""
    made = []
    run = DeviceLoop._run_one

    def counted(self, iterator, call):
        result = run(self, iterator, call)
        made.append(result.steps)
        return result

    monkeypatch.setattr(DeviceLoop, "_run_one", counted)
    return made


@pytest.mark.parametrize("replicas", [1, 2])
def test_they_equal_the_steps_of_a_loop(tmp_path, strategy, single_steps, replicas):
    hook = EveryStep()
    weights = []
    for name, hooks in ("loop", []), ("single", [hook]):
        est = make_estimator(tmp_path / name, train_distribute=strategy(replicas))
        est.train(train_input_fn, steps=STEPS, hooks=hooks)
        weights.append([est.get_variable_value(v) for v in ("hidden", "output", "global_step")])
    assert [step for step, _ in hook.seen] == list(range(STEPS))  # before the step
    assert sum(single_steps) > STEPS / 2  # so that there is something to compare
    for in_loop, alone in zip(*weights, strict=True):
        np.testing.assert_array_equal(in_loop, alone)


def test_the_data_ends_where_it_ends(tmp_path, single_steps):
    hook = EveryStep()
    est = make_estimator(tmp_path)
    est.train(lambda params: train_input_fn(params).take(STEPS - 7), hooks=[hook])
    assert [step for step, _ in hook.seen] == list(range(STEPS - 7))
    assert single_steps[-1] == 0
    assert est.latest_checkpoint().endswith(f"-{STEPS - 7}")


def test_a_step_that_fails_says_why(tmp_path, single_steps):
    def fails_late(loss, params):
        step = tf.train.get_global_step()
        with tf.control_dependencies([tf.debugging.assert_less(step, tf.constant(50, tf.int64))]):
            return tf.assign_add(step, 1)

    est = make_estimator(tmp_path, make_model_fn(fails_late))
    hook = EveryStep()
    with pytest.raises(tf.errors.InvalidArgumentError, match="assert_less"):
        est.train(train_input_fn, steps=STEPS, hooks=[hook])
    assert single_steps
    assert hook.seen[-1][0] == 49


def test_a_step_that_a_hook_sets_is_the_one_to_go_on_from(tmp_path, single_steps):
    """The session remembers the step of its last run: not beyond a change."""

    def act(step, session):
        if step == 40:
            session.run(set_step)

    class Sets(EveryStep):
        def begin(self):
            super().begin()
            nonlocal set_step
            set_step = tf.assign(tf.train.get_global_step(), STEPS - 5)

    set_step = None
    hook = Sets(act)
    est = make_estimator(tmp_path)
    est.train(train_input_fn, max_steps=STEPS, hooks=[hook])
    assert [step for step, _ in hook.seen] == [*range(41), *range(STEPS - 5, STEPS)]
    assert est.latest_checkpoint().endswith(f"-{STEPS}")


def test_the_step_is_known_after_steps_that_fetch_more(tmp_path):
    class Fetches(EveryStep):
        def begin(self):
            super().begin()
            self._fetches[1] = tf.get_default_graph().get_tensor_by_name("twice:0")

        def steps_until_control(self, global_step):
            return 10 - global_step % 10

    def model_fn(features, labels, mode, params):
        tf.multiply(tf.reduce_sum(features), 2.0, name="twice")
        return make_model_fn()(features, labels, mode, params)

    known = []
    hook = Fetches(lambda step, session: known.append((step, session.global_step())))
    make_estimator(tmp_path, model_fn).train(train_input_fn, steps=40, hooks=[hook])
    assert {9, 19, 29, 39} <= {step for step, _ in known}
    assert all(after == step + 1 for step, after in known)


def test_host_calls_that_come_to_be_a_part_of_their_steps(tmp_path, single_steps):
    called = []

    def host_call(step):
        return tf.py_func(lambda s: called.append(int(s[0])), [step], [])

    def with_host_call(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        with tf.control_dependencies([spec.train_op]):
            step = tf.reshape(tf.train.get_global_step().read_value(), [1])
        return spec._replace(host_call=(host_call, [step]))

    est = make_estimator(tmp_path, with_host_call, use_tpu=True, loop=1)
    est.train(train_input_fn, steps=700, hooks=[EveryStep()])
    assert called == list(range(1, 701))
    assert sum(single_steps) > 600
