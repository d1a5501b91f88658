"""`tensorflow_addons` 0.23 in a model_fn, unchanged, against the original with the same package."""

import pytest

from .results import record
from .runs import COMMAND, HERE, assert_alike, found, python

pytestmark = pytest.mark.full


def test_trains_a_tagger_as_the_original_does(clients, tmp_path, original):
    script = str(HERE / "addons_script.py")
    words = ["--legacy-package=tensorflow_addons", script, "here"]
    ours = found(python(clients, tmp_path, "-m", *COMMAND, *words))
    theirs = found(python(clients, tmp_path, script, "original", executable=original.python))
    assert theirs.keys() == {"lamb", "lookahead"}
    assert_alike(ours, theirs)
    record("tensorflow-addons 0.23.0", "LAMB, Lookahead, CRF and F1 scores, as the original")
