"""Steps that a hook fetches from in each of them, and what it runs besides."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.functions.tuner import Call, Tuner
from tpu_estimator_compat.engine.functions.tuning import DEFAULT, SINGLE_THREADED
from tpu_estimator_compat.engine.loop.replica_runner import FetchingStep

STEPS = 100


class Looks(tf.train.SessionRunHook):
    """Fetches what is in the step, and runs what is derived from variables after it."""

    def begin(self):
        self.seen = []
        graph = tf.get_default_graph()
        self._inside = graph.get_tensor_by_name("twice:0")
        self._weight = tf.trainable_variables()[0]
        self._norm = tf.reduce_sum(tf.square(self._weight))
        self._step = tf.train.get_global_step()

    def before_run(self, run_context):
        fetches = {"inside": self._inside, "before": [self._step, (self._weight,)]}
        return tf.train.SessionRunArgs(fetches)

    def after_run(self, run_context, run_values):
        after = run_context.session.run([self._norm, self._step])
        self.seen.append((run_values.results, after))


def model_fn(features, labels, mode, params):
    tf.multiply(tf.reduce_sum(features), 2.0, name="twice")
    return make_model_fn()(features, labels, mode, params)


def test_what_hooks_see_does_not_depend_on_the_executor(tmp_path, monkeypatch):
    seen, weights = {}, {}
    for executor in (DEFAULT, SINGLE_THREADED):
        call = Call(1, executor, looped=False)
        monkeypatch.setattr(Tuner, "next", lambda self, steps, call=call: call)
        hook = Looks()
        estimator = make_estimator(tmp_path / f"of_{executor}", model_fn)
        estimator.train(train_input_fn, steps=STEPS, hooks=[hook])
        assert [results["before"][0] for results, _ in hook.seen] == list(range(STEPS))
        assert [step for _, (_, step) in hook.seen] == list(range(1, STEPS + 1))
        seen[executor] = hook.seen
        weights[executor] = estimator.get_variable_value("hidden")
    tf.nest.map_structure(np.testing.assert_array_equal, *seen.values())
    np.testing.assert_array_equal(*weights.values())
    [(norm, _)] = [after for results, after in seen[DEFAULT] if results["before"][0] == 41]
    [weight] = [r["before"][1][0] for r, _ in seen[DEFAULT] if r["before"][0] == 42]
    np.testing.assert_allclose(norm, np.sum(np.square(weight)), rtol=1e-6)  # after, then before
    make_estimator(tmp_path / "in_a_loop", model_fn).train(train_input_fn, steps=STEPS)
    alone = make_estimator(tmp_path / "in_a_loop", model_fn).get_variable_value("hidden")
    np.testing.assert_array_equal(alone, weights[DEFAULT])


def test_a_few_fetches_are_not_worth_a_second_function(tuned):
    tuned(small_step=60.0, few_steps=2, turns=2)
    step = FetchingStep(lambda it: [next(it) * 2], may_choose=True)
    iterator = iter(tf.data.Dataset.range(20))
    executors = []
    step._function = lambda executor, it: executors.append(executor) or [next(it)]
    for _ in range(20):
        step(iterator)
    assert executors[:6] == [DEFAULT] * 5 + [SINGLE_THREADED]  # one that compiles, and two runs


def test_the_end_of_the_data_is_told():
    step = FetchingStep(lambda it: [next(it) * 2], may_choose=True)
    iterator = iter(tf.data.Dataset.range(3))
    with eager.eager_mode():
        assert [int(step(iterator)[0]) for _ in range(3)] == [0, 2, 4]
        with pytest.raises((StopIteration, tf.errors.OutOfRangeError)):
            step(iterator)
