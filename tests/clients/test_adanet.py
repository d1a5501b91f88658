"""`adanet` 0.9.0, run unchanged: it subclasses both estimators, and makes two iterations."""

import json

import pytest

from .results import record
from .runs import COMMAND, HERE, found, python

pytestmark = pytest.mark.full


@pytest.mark.parametrize("kind", ["Estimator", "TPUEstimator"])
def test_grows_an_ensemble(kind, clients, tmp_path):
    words = ["--legacy-package=adanet", str(HERE / "adanet_script.py"), kind, "model"]
    log = python(clients, tmp_path, "-m", *COMMAND, *words)
    first, last, predictions = found(log)
    assert (first["iteration"], first["global_step"]) == (0, 20)
    assert (last["iteration"], last["global_step"]) == (1, 40)
    assert last["average_loss"] < first["average_loss"]
    assert len(predictions) == 1
    model = tmp_path / "model"
    architecture = json.loads((model / "architecture-0.json").read_text())
    assert len(architecture["subnetworks"]) == 1
    record("adanet 0.9.0", f"an ensemble of two iterations with {kind}: train, evaluate, predict")
