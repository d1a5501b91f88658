"""`adanet` 0.9.0, run unchanged: it subclasses both estimators, and makes two iterations."""

import json

import pytest

from .results import record
from .runs import COMMAND, HERE, found, python

pytestmark = pytest.mark.full


def test_grows_an_ensemble_with_estimator(clients, tmp_path):
    _grows_an_ensemble(clients, tmp_path, "Estimator")


def test_grows_an_ensemble_with_tpu_estimator(clients, tmp_path):
    """With v2 behavior adanet's host_call takes scalars, which TPUEstimator refuses on a TPU."""
    _grows_an_ensemble(clients, tmp_path, "TPUEstimator", "--behavior=v1")


def _grows_an_ensemble(clients, tmp_path, kind, *options):
    words = ["--legacy-package=adanet", *options, str(HERE / "adanet_script.py"), kind, "model"]
    log = python(clients, tmp_path, "-m", *COMMAND, *words)
    first, last, predictions = found(log)
    assert (first["iteration"], first["global_step"]) == (0, 20)
    assert (last["iteration"], last["global_step"]) == (1, 40)
    assert last["average_loss"] < first["average_loss"]
    assert len(predictions) == 1
    model = tmp_path / "model"
    architecture = json.loads((model / "architecture-0.json").read_text())
    assert len(architecture["subnetworks"]) == 1
    named = " and ".join([kind, *(f"`{option}`" for option in options)])
    record("adanet 0.9.0", f"an ensemble of two iterations with {named}: train, evaluate, predict")
