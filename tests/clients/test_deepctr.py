"""`deepctr` 0.9.3: its estimators, run unchanged, against the original with the same package."""

import pytest

from .results import record
from .runs import COMMAND, HERE, assert_alike, found, python

pytestmark = pytest.mark.full


def test_estimators(clients, tmp_path, original, monkeypatch):
    # The package asks the index for its newest version when it is imported.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    script = str(HERE / "deepctr_script.py")
    options = ["--behavior=v2", "--legacy-package=deepctr"]
    ours = found(python(clients, tmp_path, "-m", *COMMAND, *options, script, "here"))
    words = [str(HERE / "older_names.py"), "deepctr", script, "there"]
    theirs = found(python(clients, tmp_path, *words, executable=original.python))
    assert theirs.keys() == {"deepfm", "xdeepfm", "dcn"}
    for values in theirs.values():
        assert values["AUC"] > 0.9
    assert_alike(ours, theirs)
    record("deepctr 0.9.3", "DeepFM, xDeepFM and DCN: train, evaluate, predict, as the original")
