"""The runtime that a config names."""

import pytest

import tpu_estimator_compat as tpu
from tpu_estimator_compat.environment import RUNTIME_VARIABLE


@pytest.mark.parametrize("value", ["Jax", "pytorch", 3])
def test_another_runtime_is_refused(value):
    with pytest.raises(ValueError, match=rf"one of tensorflow, jax, auto \(got {value!r}\)"):
        tpu.RunConfig(runtime=value)


def test_another_runtime_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv(RUNTIME_VARIABLE, "numpy")
    with pytest.raises(ValueError, match=f"{RUNTIME_VARIABLE}, should be one of.*'numpy'"):
        tpu.RunConfig()


def test_a_config_is_replaced_with_another_runtime():
    assert tpu.RunConfig().replace(runtime="jax").runtime == "jax"
