import pytest

WITH_LIBTPU = """
import tempfile
import jax
jax.devices()  # looks for a TPU, and loads libtpu
from tensorflow.profiler import experimental
from tpu_estimator_compat.engine.jax import profiler
profiler.record_too()
with experimental.Profile(tempfile.mkdtemp()):
    pass
"""


def test_a_jax_profiler_that_would_crash_is_left_out(forks):
    pytest.importorskip("libtpu")
    done = forks.run("-c", WITH_LIBTPU)
    assert done.returncode == 0, done.stderr
    assert "will not show the work of JAX's devices. JAX has loaded libtpu" in done.stderr
