"""Observers of calls: the order, the arguments, errors, and which methods count."""

import threading

import pytest

from tpu_estimator_compat.keras_model import calls


class Base:
    @calls.observed
    def __init__(self, folder):
        self.folder = folder

    @calls.observed
    def work(self, steps=1, **more):
        return [steps, more]

    @calls.observed
    def export(self):
        return self.work(3)


class Derived(Base):
    @calls.observed
    def __init__(self, folder, more):
        super().__init__(folder)
        self.more = more

    def work(self, *args):
        return super().work(*args)


def noting(seen, word=""):
    def observer(call):
        seen.append(f"{word}{call.name}")
        result = call.make()
        seen.append(result)
        return result

    return observer


def test_an_observer_changes_arguments_and_results():
    def observer(call):
        assert isinstance(call.owner, Base)
        call.arguments["steps"] += 1
        return [call.make()]

    made = Base("x")
    with calls.observing(observer):
        assert made.work(steps=4, way="other") == [[5, {"way": "other"}]]
        assert made.work(2, way="other") == [[3, {"way": "other"}]]
    assert made.work(4) == [4, {}]


def test_a_later_observer_is_outside():
    seen = []
    with calls.observing(noting(seen, "first ")), calls.observing(noting(seen, "second ")):
        Base("x").work()
    assert [each for each in seen if isinstance(each, str)] == [
        *("second __init__", "first __init__"),
        *("second work", "first work"),
    ]


def test_methods_of_base_classes_count_once_and_other_methods_within():
    seen = []
    with calls.observing(noting(seen)):
        made = Derived("x", "y")
        made.export()
    assert (made.folder, made.more) == ("x", "y")
    assert seen == ["__init__", None, "export", "work", [3, {}], [3, {}]]


def test_other_threads_are_observed():
    seen = []
    with calls.observing(noting(seen)):
        thread = threading.Thread(target=Base, args=("x",))
        thread.start()
        thread.join()
    assert seen == ["__init__", None]


def test_errors():
    told = []

    def observer(call):
        call.at_error = told.append
        return call.make() / 0

    with calls.observing(observer):
        with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument"):
            Base()
        with pytest.raises(TypeError, match="unsupported operand") as raised:
            Base("x")
    assert told == [raised.value]


def test_functions_and_arguments_by_another_signature():
    def declared(self, x, epochs=1):
        """The arguments of `fit`."""

    class Model:
        @calls.of_keras(declared)
        def fit(self, *args, **kwargs):
            return args, kwargs

    @calls.observed
    def function(x):
        return x

    seen = []
    with calls.observing(lambda call: seen.append((call.name, call.owner)) or call.make()):
        model = Model()
        assert model.fit(1, 2) == ((), {"x": 1, "epochs": 2})
        assert function(7) == 7
    assert seen == [("keras_model().declared", model), ("function", None)]
