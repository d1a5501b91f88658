"""Scripts of Python 2 are told so."""


def test_python_2_is_named(run):
    done = run('import sys\nprint "hello"\n')
    assert done.returncode == 1
    assert 'File "script.py", line 2' in done.stderr
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
