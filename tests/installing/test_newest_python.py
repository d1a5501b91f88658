"""The newest Python that README names, and the tests on it; all other tests have the oldest."""

import re

import pytest
from support.installations import ROOT, newest_python


@pytest.mark.full
@pytest.mark.minutes
def test_all_fast_tests():
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "tests"]
    done = newest_python().run(*words, cwd=ROOT, timeout=3600)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 1000
