import pytest

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
    assert 'File "script.py", line 3' in done.stderr


def test_lines_are_true_with_numpy_legacy(run):
    source = (
        '"""Doc."""\nfrom __future__ import print_function\nx = b"".tostring\n\nraise KeyError\n'
    )
    done = run(
        source.replace(".tostring\n", "\n") + "y = [].tostring()\n", options=("--numpy-legacy",)
    )
    assert 'File "script.py", line 5' in done.stderr
