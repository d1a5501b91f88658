from tpu_estimator_compat.config import TPURunConfig


def test_run_config_has_the_original_name():
    assert TPURunConfig.__name__ == "RunConfig"


def test_scripts_may_set_the_tpu_config():
    config = TPURunConfig()
    config._tpu_config = config.tpu_config._replace(iterations_per_loop=9)
    assert config.tpu_config.iterations_per_loop == 9
