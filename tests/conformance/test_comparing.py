import numpy as np
import pytest
from support.sides.comparing import Tolerance, differences
from support.sides.observing import Texts, plain


def test_numbers_and_texts():
    same = {"a": [1, 2.0, "x 0.333333"], "b": {"c": None}}
    assert differences(same, {"a": [1, 2.000001, "x 0.3333334"], "b": {"c": None}}) == []
    assert differences({"a": 1}, {"a": 1.0}) == ["a: 1 -> 1.0"]
    assert differences({"a": 1}, {"a": True}) == ["a: 1 -> True"]
    assert differences({"a": 1.0}, {"a": 1.0001}) == ["a: 1.0 -> 1.0001"]
    assert differences({"a": float("inf")}, {"a": 1.0}) == ["a: inf -> 1.0"]
    assert differences({"a": float("nan")}, {"a": float("nan")}) == []


def test_places():
    assert differences({"a": [1, 2, 3]}, {"a": [1, 3, 4]}) == ["a: -2", "a: +4"]
    assert differences({"a": 1}, {"b": 1}) == ["a: -1", "b: +1"]


def test_digits():
    texts = {"log": ["loss = 0.3333333"]}, {"log": ["loss = 0.333333343267"]}
    assert differences(*texts) == ["log: -loss = 0.3333333", "log: +loss = 0.333333343267"]


@pytest.mark.parametrize("inside", [lambda error: error, lambda error: {"calls": [[error]]}])
def test_errors_say_what_the_original_says(inside):
    longer = [inside({"error": {"text": text}}) for text in ("No.", "No. Say yes.")]
    assert differences(*longer) == []
    assert differences(*reversed(longer)) != []


def test_steps_of_losses():
    lines = [{"log": [f"loss = 0.25, step = {n} (<n> sec)"]} for n in (2, 3, 4)]
    assert differences(lines[1], lines[0]) == []  # the original read after it counted
    assert differences(lines[0], lines[1]) != []
    assert differences(lines[2], lines[0]) != []


def test_arrays():
    def array(*values: float) -> dict[str, object]:
        return {"a": plain(np.array(values, np.float32), Texts("/home"))}

    assert differences(array(1, 1e-3), array(1, 1.000001e-3)) == []
    assert differences(array(1, 1e-3), array(1, 1.001e-3)) != []
    assert differences(array(1, 1e-3), array(1, 1.001e-3), LARGEST) == []
    assert differences(array(1, 1e-3), array(1.001, 1e-3), LARGEST) != []
    assert differences(array(1, 2), array(1, 2, 3)) == [
        "a: array of float32 [2] -> array of float32 [3]"
    ]
    assert differences(array(1, np.nan), array(1, np.nan)) == []
    assert differences(array(1, np.nan), array(1, 2)) != []
    assert differences(array(1, np.inf), array(1, 2)) != []
    integers = [{"a": plain(np.array([1, each]), Texts("/home"))} for each in (2, 3)]
    assert differences(*integers) != []


LARGEST = (("*", Tolerance(1e-5, of_largest=True)),)
