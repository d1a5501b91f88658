import pathlib

import pytest
import tensorflow as tf

from tpu_estimator_compat.spec import VocabInfo, WarmStartSettings, default_warm_start_settings


def test_defaults():
    settings = WarmStartSettings("/ckpt")
    assert settings == ("/ckpt", ".*", {}, {})
    assert repr(settings).startswith("WarmStartSettings(ckpt_to_initialize_from='/ckpt'")


def test_none_and_settings_are_returned_as_they_are():
    settings = WarmStartSettings("/ckpt", vars_to_warm_start=None)
    assert default_warm_start_settings(None) is None
    assert default_warm_start_settings(settings) is settings


@pytest.mark.parametrize("given", ["/ckpt", b"/ckpt", pathlib.Path("/ckpt")])
def test_paths_warm_start_all_trainable_variables(given):
    assert default_warm_start_settings(given) == WarmStartSettings("/ckpt")


@pytest.mark.parametrize("as_type", [str, pathlib.Path, lambda path: str(path).encode()])
def test_saved_model_is_read_from_its_variables(tmp_path, as_type):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        weight = tf.compat.v1.get_variable("weight", initializer=3.0)
        session.run(weight.initializer)
        tf.compat.v1.saved_model.simple_save(
            session, str(tmp_path / "saved"), {"x": weight}, {"y": weight}
        )
    settings = default_warm_start_settings(as_type(tmp_path / "saved"))
    assert settings.ckpt_to_initialize_from == str(tmp_path / "saved/variables/variables")
    assert tf.train.load_variable(settings.ckpt_to_initialize_from, "weight") == 3.0


def test_vocab_info_is_tensorflows():
    assert VocabInfo is tf.compat.v1.train.VocabInfo
