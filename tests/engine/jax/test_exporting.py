"""Steps of the parity families lower for GPUs and TPUs, and compute what TensorFlow computes."""

import importlib.util
import sys

import jax
import pytest
import tensorflow.compat.v1 as tf
from support import families

import tpu_estimator_compat as tpu
from tpu_estimator_compat.tools.preflight.step_saving import save_step

pytestmark = pytest.mark.slow

BOUND = 1e-5
SEED = 4
"""Some first values give a sum of gradients near zero, whose relative error has no bound. With
these, the differences are below 3e-6, whether the CPU has AVX-512, AVX2 or neither."""


@pytest.mark.parametrize("name", families.NAMES)
def test_a_family(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "legacy_namespace", families.legacy_namespace("ours"))
    family = families.load(name)

    def model_fn(features, labels, mode, params):
        # TPU rules demand an exchange of each training, and not all families are made for a TPU.
        tf.tpu.cross_replica_sum(tf.zeros([]))
        return family.model_fn(features, labels, mode, params)

    estimator = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=SEED),
        params=family.PARAMS,
        train_batch_size=family.TRAIN_BATCH,
    )
    script = save_step(
        estimator,
        family.train_input_fn,
        str(tmp_path / "step"),
        largest=2**26,
        platforms=("cpu", "cuda", "rocm", "tpu"),
        estimates={},
    )
    spec = importlib.util.spec_from_file_location("run_step", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with jax.enable_x64(True):
        step = module.Step()
        own_draws = step.about["draws"]
        reference = step.ran("one.default") if own_draws else step.reference()
        found = step.compared(step.ran("one.highest"), reference)
    assert max(found["loss"], found["variables"]) < BOUND, found
