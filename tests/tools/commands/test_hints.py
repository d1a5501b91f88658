"""Hints on errors of scripts: what gets one, and what must not."""

import linecache

import pytest

from tpu_estimator_compat.old_names.legacy import imports
from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.tools.commands import hints, run

SETTING = """
import collections, itertools, math, string, sys
import numpy as np
import tensorflow as tf
def quantile(x, q): return x
d, x, m = {{'a': 1}}, np.arange(4.0), map(len, ['a'])
{}
"""

FLAG = "--numpy-legacy restores it"
PYTHON_2 = "This looks like Python 2"
TOLD = {
    # Python 2.
    "len(map(len, []))": f"{PYTHON_2}, where `map`",
    "len(filter(None, []))": PYTHON_2,
    "m[0]": "Write list(...).",
    "d.keys()[0]": PYTHON_2,
    "d.values().sort()": PYTHON_2,
    "range(3) + [1]": PYTHON_2,
    "[1] + d.keys()": PYTHON_2,
    "d.items() + d.items()": PYTHON_2,
    "range(3)[0] = 1": PYTHON_2,
    "d.has_key('a')": "Write `key in d`.",
    "d.iteritems()": "dicts had `iteritems()`. Write `items()`.",
    "collections.OrderedDict().itervalues()": "Write `values()`.",
    "(i for i in d).next()": "Write next(iterator).",
    "m.next()": "Write next(iterator).",
    "range(4 / 2)": "Write `//`.",
    "[*d][len(d) / 1]": "Write `//`.",
    "'abc'[:4 / 2]": "Write `//`.",
    "[0] * (4 / 2)": "Write `//`.",
    "import cPickle": "Its names are in pickle now",
    "from StringIO import StringIO": "Its names are in io now",
    "import urlparse": "urllib.parse",
    "from itertools import izip": "there was itertools.izip. Today it is zip",
    "itertools.imap(len, [])": "there was itertools.imap",
    "string.letters": "string.ascii_letters",
    "sys.maxint": "sys.maxsize",
    # NumPy, which the flag gives back.
    "np.float": FLAG,
    "np.asscalar(x[:1])": FLAG,
    "np.alltrue(x)": FLAG,
    "x.ptp()": FLAG,
    "x.itemset(0, 1)": FLAG,
    "x.newbyteorder()": FLAG,
    "x.tostring()": FLAG,
    "np.quantile(x, 0.3, interpolation='lower')": FLAG,
    "np.percentile(x, 30, interpolation='lower')": FLAG,
    "np.reshape(x, newshape=[2, 2])": FLAG,
    "int(np.array([3]))": FLAG,
    "np.sum(i for i in x)": FLAG,
    "np.vstack(map(np.array, [[1]]))": FLAG,
    "np.fromstring('ab', np.uint8)": FLAG,
    "np.array([[1, 2], [3]])": FLAG,
    "np.array([1], copy=False)": FLAG,
    # NumPy, which nothing gives back.
    "'%d' % np.array([3])": "line 7 of script.py uses. Write `x.item()` in it: '%d' %",
    "np.array([1], np.uint8) + 300": "Write `np.array(x).astype(dtype)`",
    "bool(np.array([]))": "Write `x.size > 0`",
}
UNTOLD = [
    "len(3)",
    "len(None)",
    "len(d)[0]",
    "None.keys()",
    "{}['a']",
    "d.sort()",
    "d.get()",
    "d.iteritem()",
    "[1] + 3",
    "range('a')",
    "'a' + 1",
    "list(d)['a']",
    "'abc'.nothing",
    "(i for i in d).nothing",
    "[*d][1.5 * len(d)]",
    "range(2.5)",
    "import no_such_module",
    "from itertools import nothing",
    "sys.nothing",
    "string.nothing",
    "np.nothing",
    "x.nothing",
    "x.item(1, 2, 3)",
    "quantile(x, 0.3, interpolation='lower')",
    "np.quantile(x, 0.3, interpolate='lower')",
    "np.ones([2]) + np.ones([3])",
    "np.zeros([2]) @ np.zeros([3])",
    "int('a')",
    "float('a b')",
    "x.reshape([3])",
    "if x: pass",
    "np.int8('a')",
    "'%d' % 'a'",
    "np.vstack([])",
    "tf.ones([2]) + tf.ones([3])",
    "tf.nothing",
    "tf.reshape(1, [3])",
    "raise ValueError('a file of NumPy')",
    "raise RuntimeError('map has no len()')",
    "open('/no/such/file')",
]


def given(code, legacy=True, flag=False):
    """The hints on the error of a line in a legacy module, or in one of today."""
    source = SETTING.replace("{{", "{").replace("}}", "}").replace("\n{}\n", f"\n{code}\n")
    linecache.cache["script.py"] = (len(source), None, source.splitlines(True), "script.py")
    names = {"__name__": "__main__" if legacy else "some_package", "__file__": "script.py"}
    if legacy:
        imports.LegacyImports().prepare(names, Dialect.V1)
    with pytest.raises(Exception) as raised:
        exec(compile(source, "script.py", "exec"), names)
    run.strip(raised.value)
    raised.value.__traceback__ = raised.value.__traceback__.tb_next  # of this function
    return list(hints.of(raised.value, numpy_legacy=flag))


@pytest.mark.parametrize("code", TOLD)
def test_a_hint(code):
    (hint,) = given(code)
    assert TOLD[code] in hint


@pytest.mark.parametrize("code", UNTOLD)
def test_no_hint(code):
    assert given(code) == []


@pytest.mark.parametrize("code", [code for code in TOLD if PYTHON_2 in TOLD[code]])
def test_code_of_today_is_not_taken_for_python_2(code):
    assert not any(PYTHON_2 in hint for hint in given(code, legacy=False))


def test_what_to_write_where_the_flag_does_not_help():
    (hint,) = given("f = x.ptp", flag=True)
    assert hint.endswith("line 7 of script.py uses. Write `np.ptp(x)` in it: f = x.ptp")
    told = given("np.quantile(x, 0.3, interpolation='lower')", legacy=False)
    assert any("Write `method=` in it" in hint for hint in told)
