"""Golden values: leaves of nested values, and their differences."""

import dataclasses
import enum

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.testing.golden.values import differences, leaves


def differs(one, other, rtol=1e-5, atol=1e-8):
    found = differences(leaves(one), leaves(other), rtol, atol)
    return [row[:3] for row in found]


@pytest.mark.parametrize(
    ("value", "leaf"),
    [
        (0.1, ["float", 0.1]),
        (3, ["int", 3]),
        (True, ["bool", True]),
        (None, ["None"]),
        ("a b\n'", ["str", "a b\n'"]),
        (b"\xff\0", ["bytes", r"b'\xff\x00'"]),
        (1 + 2j, ["complex", "(1+2j)"]),
        (np.float32(0.1), ["float32", 0.1]),
        (np.array([0.1, -np.inf], np.float16), ["float16[2]", 0.1, -np.inf]),
        (np.array([[1, 2]]), ["int64[1,2]", 1, 2]),
        (np.array([True, False]), ["bool[2]", True, False]),
        (np.array(["a b", "c"]), ["str[2]", "a b", "c"]),
        (np.array([b"a", b"b"], object), ["bytes[2]", "b'a'", "b'b'"]),
        (np.array(0.5, ml_dtypes.bfloat16), ["bfloat16", 0.5]),
        (np.zeros([0, 3], np.float32), ["float32[0,3]"]),
        ((0.5, 0.25), ["floats[2]", 0.5, 0.25]),
        ({}, ["dict"]),
    ],
)
def test_leaf_has_dtype_shape_and_elements(value, leaf):
    assert leaves(value) == {"value": leaf}


@dataclasses.dataclass
class Result:
    loss: float
    parts: tuple


class WithDict:
    def as_dict(self):
        return {"step": 2}


def test_paths_lead_through_containers():
    value = {
        "dense/kernel:0": [1, {"a.b": 2}],
        "odd = key": 3,
        7: 4,
        "result": Result(0.5, (1, 2.0)),
        "run": WithDict(),
        "tensor": tf.constant([1.5]),
    }
    assert leaves(value) == {
        "dense/kernel:0[0]": ["int", 1],
        "dense/kernel:0[1]['a.b']": ["int", 2],
        "['odd = key']": ["int", 3],
        "[7]": ["int", 4],
        "result.loss": ["float", 0.5],
        "result.parts[0]": ["int", 1],
        "result.parts[1]": ["float", 2.0],
        "run.step": ["int", 2],
        "tensor": ["float32[1]", 1.5],
    }


def test_large_array_has_a_summary():
    leaf = leaves(np.arange(1000, dtype=np.float32).reshape(10, 100))["value"]
    assert leaf[:4] == ["float32[10,100] summary", 1000, 0, 499.5]
    assert leaf[5:9] == [288.67499, 0.0, 999.0, 0.0]
    assert leaf[-1] == 999.0
    assert len(leaf) == 24


def test_summary_of_a_changed_element_differs():
    one = np.arange(1000, dtype=np.float32)
    other = one.copy()
    other[3] = 5000
    [(path, stored, now)] = differs(one, other)
    assert path.startswith("value: ")
    assert stored != now


def test_summary_counts_what_is_not_finite():
    one = np.ones(1000, np.float32)
    other = one.copy()
    other[3] = np.nan
    [(path, stored, now)] = differs(one, other)
    assert path.startswith("value: NaN elements")
    assert (stored, now) == ("0", "1")
    another = one.copy()
    another[3] = np.inf
    assert differs(other, another)


def test_summary_of_another_order_differs():
    one = np.random.RandomState(0).randn(100, 10)
    other = one.copy()
    other[1:6] = one[5:0:-1]
    [(path, *_)] = differs(one, other)
    assert path == "value: weighted mean"


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64])
def test_summary_of_what_is_exact_has_a_hash(dtype):
    one = (np.arange(1000) % 2).astype(dtype)
    one[0] = 2**40 if dtype is np.int64 else 1
    other = one.copy()
    other[2:4] = one[3:1:-1]
    assert [path for path, *_ in differs(one, other)] == ["value: hash of all"]
    assert not differs(one, one)


def test_mean_near_zero_is_compared_by_the_size_of_the_elements():
    one = np.tile(np.array([1.0, -1.0], np.float32), 500)
    assert not differs(one, one + np.float32(1e-7))
    assert differs(one, one + np.float32(1e-3))


def test_summary_of_strings_has_a_hash():
    one = np.array([str(i) for i in range(1000)])
    other = one.copy()
    other[3] = "x"
    assert [path for path, *_ in differs(one, other)] == ["value: hash of all"]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1.0, 1.000001, True),
        (1.0, 1.0001, False),
        (0.0, 1e-9, True),
        (np.float32(np.nan), np.float32(np.nan), True),
        (np.float32(np.nan), np.float32(1), False),
        (np.float32(np.inf), np.float32(-np.inf), False),
        (np.float32(1), np.float64(1), False),
        (np.ones(2), np.ones([1, 2]), False),
        (1000000, 1000001, False),
        (np.arange(3), np.array([0, 1, 3]), False),
        ("a", "b", False),
        (True, False, False),
        (None, 0, False),
    ],
)
def test_floats_have_tolerances_and_nothing_else(one, other, equal):
    assert (not differs(one, other)) == equal
    assert not differs(one, one)


def test_tolerances_are_those_given():
    assert not differs(1.0, 1.1, rtol=0.2)
    assert not differs(0.0, 0.05, rtol=0, atol=0.1)
    assert differs(1.0, 1.0000001, rtol=0, atol=0)
    assert not differs(np.float32(0.1), np.float32(0.1), rtol=0, atol=0)


def test_differences_name_paths_and_the_worst_element():
    one = {"loss": 1.0, "gone": 2, "p": np.array([[1.0, 2.0], [3.0, 4.0]])}
    other = {"loss": 2.0, "p": np.array([[1.0, 2.1], [3.0, 8.0]]), "new": 3}
    assert differs(one, other) == [
        ("loss", "1.0", "2.0"),
        ("gone", "int 2", "missing"),
        ("p[1,1] (and 1 more of 4)", "4.0", "8.0"),
        ("new", "missing", "int 3"),
    ]


def test_other_types_are_refused_by_path():
    with pytest.raises(TypeError, match=r"parts\[1\] is a object"):
        leaves({"parts": [1, object()]})
    with pytest.raises(TypeError, match="value is an array of dict objects"):
        leaves(np.array([{}, {}]))
    for other in (
        np.array(["2020-01-01"], "M8[D]"),
        np.zeros(2, "f4,i4"),
        enum.IntEnum("E", "A").A,
    ):
        with pytest.raises(TypeError, match="the value is a"):
            leaves(other)


def test_keys_that_are_written_alike_are_refused():
    with pytest.raises(ValueError, match=r"two parts at a\[0\]"):
        leaves({"a": {0: 1, (0,): 2}})


def test_too_many_parts_are_refused():
    with pytest.raises(ValueError, match="has 501 parts"):
        leaves([{"a": i} for i in range(501)])
