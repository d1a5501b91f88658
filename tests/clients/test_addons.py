"""`tensorflow_addons` 0.23 in a model_fn, unchanged, against the original with the same package."""

import json

import numpy as np
import pytest

from .results import record
from .runs import COMMAND, HERE, python

pytestmark = pytest.mark.full


def found(log):
    [line] = [line for line in log.splitlines() if line.startswith("FOUND ")]
    return json.loads(line.removeprefix("FOUND "))


def test_trains_a_tagger_as_the_original_does(clients, tmp_path, original):
    script = str(HERE / "addons_script.py")
    words = ["--legacy-package=tensorflow_addons", script, "here"]
    ours = found(python(clients, tmp_path, "-m", *COMMAND, *words))
    theirs = found(python(clients, tmp_path, script, "original", executable=original.python))
    assert ours.keys() == theirs.keys() == {"lamb", "lookahead"}
    for name, values in theirs.items():
        assert ours[name].pop("names") == values.pop("names")
        assert ours[name].keys() == values.keys()
        for key, value in values.items():
            np.testing.assert_allclose(ours[name][key], value, rtol=1e-5, err_msg=f"{name} {key}")
    record("tensorflow-addons 0.23.0", "LAMB, Lookahead, CRF and F1 scores, as the original")
