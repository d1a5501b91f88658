"""Scripts of Python 2 are told so."""

from __future__ import annotations


def test_python_2_is_named(run):
    done = run('import sys\nprint "hello"\n')
    assert done.returncode == 1
    assert 'File "script.py", line 2' in done.stderr
    assert "This looks like Python 2" in done.stderr
    assert "`print x` is `print(x)` now" in done.stderr
    assert "Traceback" not in done.stderr
