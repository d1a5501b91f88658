"""Functions that are traced once for all programs that are the same."""

import gc
import weakref

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from tpu_estimator_compat.engine.functions import functions, traces
from tpu_estimator_compat.engine.functions.traces import Contents, Handles, Traces


@pytest.fixture
def kept(monkeypatch):
    """The traces of this process, with none in them."""
    kept = Traces()
    monkeypatch.setattr(functions, "TRACES", kept)
    return kept


class Adder:
    """Adds to a variable of its own; counts how often that is traced."""

    traced = 0

    def __init__(self, signature="adds", named=True):
        self.variable = tf.Variable(0.0)
        handles = Handles({"total": self.variable.handle} if named else {})
        self.function = functions.SharedFunction(self._add, Contents(signature, [handles]))

    def _add(self, number):
        Adder.traced += 1
        return self.variable.assign_add(number)

    def __call__(self, number):
        [result] = self.function(tf.constant(number))
        return float(result)


@pytest.fixture(autouse=True)
def from_zero():
    Adder.traced = 0


def test_equal_functions_share_a_trace_but_not_variables(kept):
    first, second = Adder(), Adder()
    assert [first(1.0), second(10.0), first(2.0), second(20.0)] == [1.0, 10.0, 3.0, 30.0]
    assert (Adder.traced, len(kept)) == (1, 1)


def test_what_differs_is_traced_by_itself(kept):
    others = [Adder("adds otherwise"), Adder("adds otherwise")]
    assert [Adder()(1.0), *(other(2.0) for other in others)] == [1.0, 2.0, 2.0]
    assert (Adder.traced, len(kept)) == (2, 2)


def test_what_holds_on_to_something_without_a_name_is_not_kept(kept):
    assert [Adder(named=False)(1.0), Adder(named=False)(2.0)] == [1.0, 2.0]
    assert (Adder.traced, len(kept)) == (2, 0)


def test_types_of_arguments_are_told_apart(kept):
    function = functions.SharedFunction(lambda x: tf.size(x), Contents("size", []))
    again = functions.SharedFunction(lambda x: tf.size(x), Contents("size", []))
    for shape in ([2], [3], [3, 1]):
        [size], [size_again] = function(tf.zeros(shape)), again(tf.zeros(shape))
        assert int(size) == int(size_again) == shape[0]
    [size] = again(tf.zeros([2], tf.int32))
    assert int(size) == 2
    assert len(kept) == 4


def test_constants_count_as_large_as_the_runtime_makes_them(monkeypatch):
    kept = Traces(most_bytes=2**20)
    monkeypatch.setattr(functions, "TRACES", kept)
    for size in (2**19, 2**17):  # one number each in the definition
        make = functions.SharedFunction(
            lambda n=size: tf.constant(1.5, shape=[n]), Contents(size, [])
        )
        [made] = make()
        assert made.shape == [size]
    assert len(kept) == 1


@pytest.mark.parametrize(
    "context",
    [
        lambda: functions.call_options(executor="SINGLE_THREADED_EXECUTOR"),
        lambda: functions.call_options(optimize=False),
        lambda: tf.device("/cpu:1"),
    ],
    ids=["executor", "grappler", "device"],
)
def test_what_tracing_goes_by_is_told_apart(kept, context):
    assert Adder()(1.0) == 1.0
    for _ in range(2):
        with context():
            assert Adder()(2.0) == 2.0
    assert (Adder.traced, len(kept)) == (2, 2)


def test_deterministic_ops_are_told_apart(kept, monkeypatch):
    assert Adder()(1.0) == 1.0
    monkeypatch.setattr(traces.config, "is_op_determinism_enabled", lambda: True)
    assert Adder()(1.0) == 1.0
    assert (Adder.traced, len(kept)) == (2, 2)


def test_nothing_is_shared_where_something_looks_on(kept):
    Adder()(1.0)
    tf.debugging.enable_check_numerics()
    try:
        Adder()(1.0)
    finally:
        tf.debugging.disable_check_numerics()
    assert (Adder.traced, len(kept)) == (2, 1)


def test_a_kept_function_keeps_no_variable(kept):
    adder = Adder()
    adder(1.0)
    gone = weakref.ref(adder.variable)
    del adder
    gc.collect()
    assert gone() is None
    assert len(kept) == 1
    assert Adder()(5.0) == 5.0
    assert Adder.traced == 1


def names_of_functions():
    return set(context.context().list_function_names())


def test_the_functions_used_last_are_kept_and_others_freed(kept, monkeypatch):
    monkeypatch.setattr(kept, "_most", 3)
    before = names_of_functions()
    for i in (0, 1, 2, 0, 3, 4):
        assert Adder(signature=i)(1.0) == 1.0
    assert Adder.traced == 5
    gc.collect()
    assert (len(kept), len(names_of_functions() - before)) == (3, 3)
    assert Adder(signature=0)(1.0) == 1.0  # used after 1 and 2
    assert Adder.traced == 5
    kept.clear()
    gc.collect()
    assert not names_of_functions() - before


def test_large_functions_are_kept_up_to_their_size(monkeypatch):
    kept = Traces(most_bytes=400_000)
    monkeypatch.setattr(functions, "TRACES", kept)
    large = tf.random.uniform([10_000]).numpy()  # two constants, defined and made: 160 KB
    for i in range(4):
        functions.SharedFunction(lambda: tf.reduce_sum(large), Contents(i, []))()
    assert len(kept) == 2
    huge = tf.random.uniform([100_000]).numpy()
    functions.SharedFunction(lambda: tf.reduce_sum(huge), Contents("huge", []))()
    assert len(kept) == 2
