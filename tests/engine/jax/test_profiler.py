import gc

import pytest

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.jax import profiler
from tpu_estimator_compat.tf_internals import profiler_v2

WITH_LIBTPU = """
import tempfile
import jax
jax.devices()  # looks for a TPU, and loads libtpu
from tensorflow.profiler import experimental
from tpu_estimator_compat.engine.jax import profiler
from tpu_estimator_compat.config import RunConfig
config = RunConfig()
profiler.record_too(config)
with experimental.Profile(tempfile.mkdtemp()):
    pass
"""


def test_a_jax_profiler_that_would_crash_is_left_out(forks):
    pytest.importorskip("libtpu")
    done = forks.run("-c", WITH_LIBTPU)
    assert done.returncode == 0, done.stderr
    assert "will not show the work of JAX's devices. JAX has loaded libtpu" in done.stderr


def test_tensorflows_class_is_replaced_while_an_estimator_exists():
    gc.collect()  # estimators of other tests
    interface = profiler_v2._pywrap_profiler
    original, config, other = interface.ProfilerSession, RunConfig(), RunConfig()
    profiler.watch(config)
    profiler.watch(config)
    profiler.watch(other)
    assert isinstance(interface.ProfilerSession(), profiler._Session)
    del config
    gc.collect()
    assert isinstance(interface.ProfilerSession(), profiler._Session)
    del other
    gc.collect()
    assert interface.ProfilerSession is original
