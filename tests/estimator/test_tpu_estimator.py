from support.legacy_models import make_estimator

import tpu_estimator_compat as tpu


def test_the_feed_hook_is_said_to_have_no_effect(tmp_path, caplog):
    make_estimator(tmp_path, tpu_config=tpu.TPUConfig(experimental_feed_hook=object))
    assert "experimental_feed_hook=<class 'object'> has no effect" in caplog.text
