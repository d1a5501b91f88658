"""Who imports JAX, and what becomes of its settings."""

from support.jax_estimators import on
from support.legacy_models import train_input_fn


def test_x64_stays_off_for_others(tmp_path):
    import jax

    on("jax", 1, tmp_path).train(train_input_fn, max_steps=1)
    assert not jax.config.jax_enable_x64


WITHOUT_JAX = """
import sys
import tpu_estimator_compat as tpu
tpu.RunConfig(runtime="jax"), tpu.TPUEstimator
print([name for name in sys.modules if name.startswith("tpu_estimator_compat.engine.jax")])
"""


def test_jax_is_imported_by_those_who_use_it(forks):
    """By this package; TensorFlow itself imports it, where it is installed."""
    done = forks.run("-c", WITHOUT_JAX)
    assert done.stdout == "[]\n", done.stderr
