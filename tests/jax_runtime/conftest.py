"""Eight CPU devices for JAX, of which a test takes the first n by `TPUConfig(num_shards=n)`."""

import jax
import pytest

from tpu_estimator_compat.runtime import jax_installation

jax.config.update("jax_num_cpu_devices", 8)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """Lowered steps are kept for the session, and not in the home directory."""
    directory = tmp_path_factory.getbasetemp() / "jax-cache"
    monkeypatch.setattr(jax_installation, "cache_directory", lambda: directory)
