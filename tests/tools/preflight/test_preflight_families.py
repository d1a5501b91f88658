"""The steps of the parity families compile for TPUs: each for one, each TPU has every mode."""

import itertools
import sys

import pytest
import tensorflow as tf
from support import families

import tpu_estimator_compat as tec
from tpu_estimator_compat.tools.preflight.report import Depth, Verdict

pytestmark = pytest.mark.slow

TOPOLOGIES = ["v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2"]
MODES = ["train", "eval", "infer"]
STEPS = [
    pytest.param(
        *(family, mode, TOPOLOGIES[i % len(TOPOLOGIES)]),
        marks=[pytest.mark.full] if mode == "infer" and i % 2 else [],
    )
    for i, (family, mode) in enumerate(itertools.product(families.NAMES, MODES))
]


@pytest.fixture
def family(request, monkeypatch):
    monkeypatch.setitem(sys.modules, "legacy_namespace", families.legacy_namespace("ours"))
    return families.load(request.param)


@pytest.mark.parametrize(("family", "mode", "topology"), STEPS, indirect=["family"])
def test_a_family_compiles(family, mode, topology, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def model_fn(features, labels, mode, params):
        # TPU rules demand an exchange of each training, and not all families are made for a TPU.
        tf.compat.v1.tpu.cross_replica_sum(tf.zeros([]))
        return family.model_fn(features, labels, mode, params)

    estimator = tec.TPUEstimator(
        model_fn,
        config=tec.RunConfig(model_dir=str(tmp_path / "model")),
        params=family.PARAMS,
        train_batch_size=8 * family.TRAIN_BATCH,
        eval_batch_size=8 * family.EVAL_BATCH,
        predict_batch_size=8 * family.PREDICT_BATCH,
    )
    names = {"train": "train_input_fn", "eval": "eval_input_fn", "infer": "predict_input_fn"}
    result = estimator.preflight(getattr(family, names[mode]), topology, mode)
    assert result.verdict is Verdict.FITS, str(result)
    for report in result.reports:
        assert report.reached is Depth.COMPILE
        assert report.flops > 0
        assert report.memory.arguments >= report.input_bytes
        assert sum(x.variables + x.slots for x in report.layers) == report.variable_bytes
        asked, compiled = report.collectives.all_reduces, report.collectives.compiled
        has_loss = mode != "infer"  # which is joined over the replicas
        assert bool(asked or has_loss) == bool(compiled)
