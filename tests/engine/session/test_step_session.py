import pytest

from tpu_estimator_compat.engine.inputs import DeployedInput
from tpu_estimator_compat.engine.session.read_policy import AFTER_LOOP, BEFORE_LAST_STEP
from tpu_estimator_compat.engine.session.run_limits import RunLimits
from tpu_estimator_compat.engine.session.step_session import StepSession

from .steps import Steps


@pytest.fixture
def made(strategy):
    """`made(limits, **fields)`: steps of a plan with such fields, and a session that runs them."""

    def of(limits, **fields):
        steps = Steps(strategy, 1, **fields)
        data = steps.data(1, 10, 100, 1000, 10_000, 100_000)
        return steps, StepSession(
            lambda: steps.runner,
            DeployedInput([], lambda: [data], strategy(1), data.element_spec),
            limits,
        )

    return of


@pytest.mark.parametrize("fetched", [False, True])
@pytest.mark.parametrize(("before", "total"), [(True, 11), (False, 111)])
def test_all_steps_of_a_run_count(made, before, total, fetched):
    """Variables are read before the last of them, or after all, but their number is the same.

    It does not depend on whether a hook fetches what only a step has.
    """
    steps, session = made(RunLimits(steps=3, reads=BEFORE_LAST_STEP if before else AFTER_LOOP))
    within = [steps.doubled] if fetched else []
    loss, read, *_ = session.run([steps.loss, steps.total, *within, *steps.plan.targets])
    assert (loss, read) == (100, total)
    assert (session.steps_last_run, session.global_step()) == (3, 3)


def test_a_step_that_is_assigned_is_the_one_that_is_told(made):
    """As a Keras callback assigns it, past the session."""
    steps, session = made(RunLimits(steps=2))
    session.run([steps.loss, *steps.plan.targets])
    assert session.global_step() == 2
    steps.store.assign("global_step", 7)
    assert session.global_step() == 7


def test_host_calls_of_some_steps_are_counted_from_the_begin_of_a_run(made):
    steps, session = made(RunLimits(steps=3), host_calls_every=2)
    for _ in range(2):
        session.run([steps.loss, *steps.plan.targets])
    assert steps.read(steps.seen) == 2 * (1 + 100 + 1000 + 100_000)
