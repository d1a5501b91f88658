import pytest
import tensorflow as tf

from tpu_estimator_compat.config import RunConfig, TPURunConfig

v1 = tf.compat.v1


BOTH = pytest.mark.parametrize("run_config", [RunConfig, TPURunConfig], ids=["plain", "tpu"])


def jit_session_config(level):
    config = v1.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    return config


@BOTH
@pytest.mark.parametrize(("level", "expected"), [(-1, False), (0, False), (1, True), (2, True)])
def test_jit_follows_the_session_config(run_config, level, expected):
    assert run_config(session_config=jit_session_config(level)).jit_compile is expected


@BOTH
def test_jit_given_beats_the_session_config(run_config):
    config = run_config(session_config=jit_session_config(1), jit_compile=False)
    assert config.jit_compile is False
    assert config.replace(jit_compile=None).jit_compile is True
    assert run_config().jit_compile is False


def test_jit_is_given_by_name_only():
    with pytest.raises(TypeError):
        RunConfig(*[None] * 17, True)
