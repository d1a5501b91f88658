import collections

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.loop.runner import RunLimits
from tpu_estimator_compat.engine.session import fetches as fetches_lib
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.session.step_session import StepSession

from ..loop.steps import Steps


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
    steps, session = made(RunLimits(steps=3, reads_after_loop=not before))
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


def test_host_calls_every_n_steps_count_from_the_runs_start(made):
    steps, session = made(RunLimits(steps=3), host_calls_every=2)
    for _ in range(2):
        session.run([steps.loss, *steps.plan.targets])
    assert steps.read(steps.seen) == 2 * (1 + 100 + 1000 + 100_000)


Pair = collections.namedtuple("Pair", ["first", "second"])


@pytest.fixture
def asked(graph):
    """Structures of what a session takes, with what each of them is to return."""
    one, two = tf.constant(1.0, name="one"), tf.constant(2.0, name="two")
    sparse = tf.sparse.SparseTensor([[0]], one[None], [3])
    return [
        (one, 1.0),
        ("two:0", 2.0),
        (one.op, None),
        ([one, two, one], [1.0, 2.0, 1.0]),
        ((one, [two, ()]), (1.0, [2.0, ()])),
        (Pair(one, {"a": two, "b": [one.op, one]}), Pair(1.0, {"a": 2.0, "b": [None, 1.0]})),
        (collections.OrderedDict(z=two, a=one), collections.OrderedDict(z=2.0, a=1.0)),
        ({"caller": [two.op, two], "hook": {}}, {"caller": [None, 2.0], "hook": {}}),
        ({"sparse": sparse}, {"sparse": tf.SparseTensorValue([[0]], [1.0], [3])}),
    ]


def test_results_look_like_the_fetches(session, asked):
    for _ in range(3):
        for structure, expected in asked:
            found = session.run(structure)
            assert type(found) is type(expected) or not isinstance(found, (list, tuple, dict))
            assert repr(tf.nest.map_structure(_plain, found)) == repr(
                tf.nest.map_structure(_plain, expected)
            )


def _plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


def test_a_list_that_changed_or_has_another_name_is_another(graph, session):
    one, two = tf.constant(1.0), tf.constant(2.0)
    fetches = {"hook": [one]}
    assert session.run(fetches) == {"hook": [1.0]}
    fetches["hook"].append(two)
    assert session.run(fetches) == {"hook": [1.0, 2.0]}
    assert session.run({"other": [one]}) == {"other": [1.0]}
    fetches["hook"] = (two,)
    assert session.run(fetches) == {"hook": (2.0,)}
    first = session.run(fetches)
    first["mine"] = 1  # what a hook does to its results is its own matter
    assert session.run(fetches) == {"hook": (2.0,)}


def test_what_is_kept_is_bounded_and_goes_with_the_session(graph, session):
    constants = [tf.constant(float(i)) for i in range(2 * fetches_lib._MOST)]
    assert [session.run(c) for c in constants] == list(range(len(constants)))
    assert 0 < len(session._handlers._kept) <= fetches_lib._MOST
    session.close()
    assert not session._handlers._kept


def test_a_session_looks_like_one_of_tensorflow(graph, session):
    config = tf.ConfigProto(log_device_placement=True)
    assert isinstance(session, tf.Session)
    assert GraphSession(graph, session.store, config)._config is config
    [cpu] = [device for device in session.list_devices() if device.name.endswith("CPU:0")]
    assert (cpu.device_type, cpu.memory_limit_bytes > 0) == ("CPU", True)


def test_what_would_need_a_session_in_c_is_an_error(session):
    with pytest.raises(AttributeError, match="no session in C"):
        session._extend_graph()
