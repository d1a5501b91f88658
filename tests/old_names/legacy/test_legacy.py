import ast

import pytest
from support.proofs.served import found

from tpu_estimator_compat.old_names.legacy import overlay, table
from tpu_estimator_compat.old_names.legacy.references import references

ROWS = table.load().rows


def test_a_refused_name_may_be_imported_and_asked_for():
    quantize = found("tf.contrib.quantize")
    thing = quantize.create_training_graph
    assert "not provided" in repr(thing)
    assert not isinstance(1, thing)
    deeper = found("tf.contrib.model_pruning").Pruning.attribute
    with pytest.raises(
        NotImplementedError, match=r"tf\.contrib\.model_pruning\.Pruning\.attribute"
    ):
        deeper()


def test_what_a_namespace_refuses_is_refused_inside_of_it():
    inside = "tf.contrib.rnn.python.ops.rnn_cell"
    cell = overlay.member(found(inside), inside, "NTMCell")
    with pytest.raises(NotImplementedError) as raised:
        cell(4)
    assert ROWS["tf.contrib.rnn.NTMCell"].advice in str(raised.value)
    with pytest.raises(ImportError):
        overlay.member(found(inside), inside, "NoSuchCell")


def test_a_name_that_is_rebound_stands_for_both():
    code = "import tensorflow as tf\ntf = tf.compat.v1\ntf.Session()"
    paths = {r.path for r in references(ast.parse(code))}
    assert {"tensorflow.Session", "tensorflow.compat.v1.Session"} <= paths


def test_the_table_is_loaded_in_order_and_says_what_to_do():
    for row in ROWS.values():
        assert row.since in ("2.0", "2.3", "2.16"), row
        assert bool(row.served_by) == (row.status is not table.Status.REFUSED), row
        assert row.advice or row.status is table.Status.WORKS, row
        if row.advice:
            assert row.advice[0].isupper() or row.advice.startswith("`tf."), row
            assert row.advice.endswith("."), row
        if row.move_to:
            assert row.move_to.startswith("tf"), row


def test_names_that_python_dropped(run):
    done = run("""
        import collections, inspect, time
        from collections import Mapping, OrderedDict
        assert isinstance({}, Mapping) and collections.Mapping is Mapping
        assert inspect.getargspec(lambda a, b=1, *c: 0) == (["a", "b"], "c", None, (1,))
        assert time.clock() <= time.clock()
        """)
    assert done.returncode == 0, done.stderr


def test_modules_of_pythons_that_tensorflow_had_imported(run):
    done = run("""
        import tensorflow as tf
        import distutils
        assert distutils.version.LooseVersion("1.15.5") < distutils.version.LooseVersion("2.0.0")
        """)
    assert done.returncode == 0, done.stderr


NUMPY = """
    import numpy as np
    assert np.float is float and np.bool is bool and np.product([2, 3]) == 6
    text = np.zeros(2, np.int32).tostring()
    assert text == bytes(8)
    assert np.zeros(1).dtype == np.float64
    assert isinstance(np.linalg.norm(np.ones(3)), np.float64)
    """


@pytest.mark.slow
def test_numpy_legacy(run):
    done = run(NUMPY, options=("--numpy-legacy",))
    assert done.returncode == 0, done.stderr
    done = run(NUMPY)
    assert done.returncode == 1
    assert "--numpy-legacy" in done.stderr
    assert 'script.py", line 3' in done.stderr


def test_lines_are_true_with_numpy_legacy(run):
    source = (
        '"""Doc."""\nfrom __future__ import print_function\nx = b"".tostring\n\nraise KeyError\n'
    )
    done = run(
        source.replace(".tostring\n", "\n") + "y = [].tostring()\n", options=("--numpy-legacy",)
    )
    assert 'script.py", line 5' in done.stderr


@pytest.mark.parametrize(("setup", "times"), [("", 1), ("logging.basicConfig(level=20)", 2)])
def test_log_lines_are_pythons(run, setup, times):
    done = run(
        f"import logging\nimport tensorflow as tf\n{setup}\n"
        "tf.logging.set_verbosity(tf.logging.INFO)\ntf.logging.info('told')\n"
    )
    lines = [line for line in done.stderr.splitlines() if "told" in line]
    assert lines == ["INFO:tensorflow:told"] * times


def test_python_2_is_named(run):
    done = run('import sys\nprint "hello"\n')
    assert done.returncode == 1
    assert 'script.py", line 2' in done.stderr
    assert "This looks like Python 2" in done.stderr
    assert "`print x` is `print(x)` now" in done.stderr
    assert "Traceback" not in done.stderr


OLD = """
import beside
total = long(3)
print([unicode(i) for i in xrange(total)], reduce(lambda a, b: a + b, [1, 2]))
print(isinstance("a", basestring), beside.long_of(2), unichr(97), __name__)
try:
    xrange
except NameError:
    print("never")
import builtins
print(hasattr(builtins, "xrange"))
"""


def test_builtins_are_given_to_those_who_take_them_to_be_there(run, tmp_path):
    (tmp_path / "beside.py").write_text(
        "try:\n    text = unicode\nexcept NameError:\n    text = None\n"
        "def long_of(x):\n    return long(x), text\n"
    )
    done = run(OLD)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['0', '1', '2'] 3", "True (2, None) a __main__", "False"]
    said = [line for line in done.stderr.splitlines() if "Python 2" in line]
    assert "script.py uses basestring, long, reduce, unichr, unicode, xrange: " in said[0]
    assert "beside.py uses long: The file was written for Python 2, where `/` of" in said[1]


def test_a_name_that_python_2_never_had_is_missing_as_ever(run):
    done = run("xrang(3)\n")
    assert done.returncode == 1
    assert "NameError: name 'xrang' is not defined" in done.stderr
