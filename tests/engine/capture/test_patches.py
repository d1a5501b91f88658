"""A function is replaced for its thread, and put back whatever the order of threads."""

import threading
import types

import pytest

from tpu_estimator_compat.engine.capture.patches import patched


@pytest.fixture
def module():
    return types.SimpleNamespace(name=lambda: "original")


def in_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def saying(word):
    return lambda before: f"{word} of {before()}"


def test_only_the_thread_itself_has_another_function(module):
    original = module.name
    with patched(module, "name", saying("double")):
        assert module.name() == "double of original"
        assert in_thread(lambda: module.name()) == "original"
    assert module.name is original


def test_replacements_within_others(module):
    with patched(module, "name", saying("outer")):
        with patched(module, "name", saying("inner")):
            assert module.name() == "inner of outer of original"
        assert module.name() == "outer of original"


def test_threads_leave_in_the_order_in_which_they_came(module):
    original, entered, leave = module.name, threading.Event(), threading.Event()

    def first():
        with patched(module, "name", saying("first")):
            entered.set()
            leave.wait()
            return module.name()

    found = []
    thread = threading.Thread(target=lambda: found.append(first()))
    thread.start()
    entered.wait()
    with patched(module, "name", saying("second")):
        leave.set()
        thread.join()
        assert found == ["first of original"]
        assert module.name() == "second of original"
    assert module.name is original


@pytest.mark.parametrize("in_all_threads", [False, True])
@pytest.mark.parametrize("first_to_end", ["outer", "inner"])
def test_replacements_of_one_name_end_in_any_order(module, first_to_end, in_all_threads):
    original = module.name
    how = {"in_all_threads": in_all_threads}
    patches = {word: patched(module, "name", saying(word), **how) for word in ("outer", "inner")}
    for patch in patches.values():
        patch.__enter__()
    patches.pop(first_to_end).__exit__(None, None, None)
    [(left, patch)] = patches.items()
    assert module.name() == f"{left} of original"
    patch.__exit__(None, None, None)
    assert module.name is original


def test_a_replacement_in_all_threads_is_below_those_of_a_thread(module):
    with patched(module, "name", saying("own")):
        with patched(module, "name", saying("common"), in_all_threads=True):
            assert module.name() == "own of common of original"
            assert in_thread(lambda: module.name()) == "common of original"
        assert module.name() == "own of original"


def test_a_kept_function_calls_the_original_afterwards(module):
    with patched(module, "name", saying("double")):
        kept = module.name
    assert kept() == "original"


def test_an_error_leaves_nothing(module):
    original = module.name
    with pytest.raises(ZeroDivisionError), patched(module, "name", saying("double")):
        raise ZeroDivisionError
    assert module.name is original


def test_a_method_of_a_class_gets_its_object():
    class Named:
        def name(self, end=""):
            return f"{type(self).__name__}{end}"

    original = Named.name
    with patched(Named, "name", lambda before, self, **how: before(self, **how) + "!"):
        assert Named().name(end="?") == "Named?!"
        assert Named.name.__name__ == "name"
    assert Named.name is original
