"""`--numpy-legacy`: what NumPy dropped; the values are those of NumPy 1.26 and 1.18."""

import ast
import textwrap

import numpy as np
import pytest

from tpu_estimator_compat.old_names.legacy.python_numpy import numpy_methods, numpy_names

CASES = {
    # Arguments.
    "np.quantile(x, 0.3, interpolation='nearest')": 1.0,
    "np.percentile(x, 30, interpolation='lower')": 1.0,
    "np.nanquantile(x, 0.3, interpolation='higher')": 2.0,
    "np.nanpercentile(x, 30, interpolation='midpoint')": 1.5,
    "np.percentile(x, 30)": 1.2,
    "np.reshape(x, newshape=(5, 1)).shape": (5, 1),
    "np.reshape(x, (1, 5)).shape": (1, 5),
    "np.histogram([1, 2, 2], bins=2, normed=True)[0].tolist()": [1 / 1.5, 2 / 1.5],
    "np.corrcoef([1, 2, 3], [1, 2, 3], bias=1).round(6).tolist()": [[1, 1], [1, 1]],
    "np.array2string(np.arange(2), style=repr)": "[0 1]",
    # Arguments' kinds.
    "np.sum(i for i in range(4))": 6,
    "np.sum(x[i:][:2] for i in range(3)).tolist()": [3.0, 6.0],
    "np.sum(x)": 10.0,
    "np.vstack(map(np.array, [[1], [2]])).tolist()": [[1], [2]],
    "np.hstack(np.array([i]) for i in range(2)).tolist()": [0, 1],
    "np.stack([x, x]).shape": (2, 5),
    "np.fromstring('abc', dtype=np.uint8).tolist()": [97, 98, 99],
    "np.fromstring(b'\\x01\\x00', np.int16).tolist()": [1],
    "np.fromstring('1 2', sep=' ').tolist()": [1.0, 2.0],
    "np.array([1, 2], copy=False).tolist()": [1, 2],
    "np.array([[1, 2], [3]]).dtype": np.dtype(object),
    "np.array([[1, 2], [3, 4]]).shape": (2, 2),
    # Names.
    "np.asscalar(x[1:2])": 1.0,
    "np.alen(x)": 5,
    "np.rank(x)": 1,
    "np.msort(x[::-1]).tolist()": [0, 1, 2, 3, 4],
    "np.asfarray([1]).dtype": np.dtype(float),
    "np.asfarray([1], dtype=np.float32).dtype": np.dtype("float32"),
    "np.cast[np.int32](x).dtype": np.dtype("int32"),
    "np.cast['float32'](1).dtype": np.dtype("float32"),
    "np.nbytes[np.float64]": 8,
    "np.mat([[1, 2]]).shape": (1, 2),
    "np.trapz(x)": 8.0,
    "np.in1d(x, [1.0]).sum()": 1,
    "np.safe_eval('[1]')": [1],
    "np.issubclass_(np.int32, np.integer)": True,
    "np.issubsctype(np.int32, np.integer)": True,
    "np.sctype2char(np.float32)": "f",
    "np.obj2sctype('f4')": np.float32,
    "np.bool8": np.bool_,
    "np.int0": np.intp,
    "np.longfloat": np.longdouble,
    "np.AxisError": np.exceptions.AxisError,
    "np.NINF": -np.inf,
    "np.PZERO": 0.0,
    # Methods.
    "x.ptp()": 4.0,
    "np.ones([2, 3]).ptp(axis=1).tolist()": [0.0, 0.0],
    "np.float32(3).ptp()": 0.0,
    "set_(x.copy(), 1, 7.0)": [0, 7, 2, 3, 4],
    "set_(np.zeros([2, 2]), (1, 0), 7.0)": [[0, 0], [7, 0]],
    "set_(np.zeros([2, 2]), 3, 7.0)": [[0, 0], [0, 7]],
    "set_(np.zeros([1, 1]), 7.0)": [[7]],
    "np.array([1], np.int16).newbyteorder().tolist()": [256],
    "np.array([1], np.int16).newbyteorder('S').dtype.byteorder": ">",
    "np.zeros(1, np.int8).tostring()": b"\0",
    # Conversions.
    "int(np.array([3]))": 3,
    "float(np.array([[2.5]]))": 2.5,
    "complex(np.array([1]))": 1 + 0j,
    "int('12')": 12,
    "float(np.float32(1))": 1.0,
    # What is the script's own is left alone.
    "Own().ptp(1, two=2)": (1, 2),
    "Own().tostring()": "own",
    "(lambda int: int([1]))(len)": 1,
    "int(*['7'])": 7,
    "int('11', 2)": 3,
}

MODULE = """
    def set_(array, *args):
        array.itemset(*args)
        return array.tolist()


    class Own:
        def ptp(self, *args, **kwargs):
            return (*args, *kwargs.values())

        def tostring(self):
            return "own"


    x = np.arange(5.0)
    value = {}
"""


def value_of(code):
    source = textwrap.dedent(MODULE).format(code)
    names = {"np": numpy_names.numpy()}
    exec(compile(numpy_methods.mended(ast.parse(source)), "module", "exec"), names)
    return names["value"]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("code", CASES)
def test_as_before(code):
    expected = CASES[code]
    assert value_of(code) == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    "code",
    [
        "int(np.array([1, 2]))",
        "np.array([[1, 2], [3]], dtype=float)",
        "np.zeros([2]).itemset(7.0)",
        "Own().itemset(1)",
        "np.quantile(x, 0.3, interpolate='nearest')",
        "np.no_such_name",
    ],
)
def test_what_was_an_error_is_one(code):
    with pytest.raises((AttributeError, TypeError, ValueError)):
        value_of(code)


def test_all_names_are_there():
    numpy = numpy_names.numpy()
    for name in numpy_names.given():
        assert hasattr(numpy, name), name
