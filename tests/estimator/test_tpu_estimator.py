import pytest
from support.legacy_models import make_estimator, make_model_fn

import tpu_estimator_compat as tpu


@pytest.mark.parametrize(
    ("model_fn", "message"),
    [
        (lambda labels, params: None, "must include features argument"),
        (lambda features, parameters: None, "has following not expected args: \\['parameters'\\]"),
        (None, "model_fn must be provided to Estimator"),
    ],
)
def test_model_fn_arguments(tmp_path, model_fn, message):
    with pytest.raises(ValueError, match=message):
        tpu.TPUEstimator(
            model_fn, config=tpu.RunConfig(model_dir=str(tmp_path)), train_batch_size=1
        )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"train_batch_size": None}, ValueError, "`train_batch_size` cannot be `None`"),
        ({"train_batch_size": 0}, ValueError, "train_batch_size must be positive, got 0"),
        ({"train_batch_size": "8"}, TypeError, "train_batch_size must be int"),
        ({"eval_batch_size": -1}, ValueError, "eval_batch_size must be positive"),
        ({"params": {"batch_size": 3}}, ValueError, "are reserved keys but existed in params"),
        ({"params": {"context": 3}}, ValueError, "are reserved keys but existed in params"),
        ({"config": None}, ValueError, "`config` must be provided with type"),
        ({"model_dir": "elsewhere"}, ValueError, "`model_dir` are set both in constructor and"),
        ({"export_saved_model_api_version": 3}, ValueError, "should be 1 or 2; got 3"),
    ],
)
def test_constructor(tmp_path, arguments, error, message):
    config = tpu.RunConfig(model_dir=str(tmp_path))
    good = {"config": config, "train_batch_size": 8, "use_tpu": True}
    with pytest.raises(error, match=message):
        tpu.TPUEstimator(make_model_fn(), **{**good, **arguments})


def test_input_fn_without_params(tmp_path):
    with pytest.raises(ValueError, match="does not include params argument, required by TPUEst"):
        make_estimator(tmp_path).train(lambda: None, steps=1)


def test_the_feed_hook_is_said_to_have_no_effect(tmp_path, caplog):
    make_estimator(tmp_path, tpu_config=tpu.TPUConfig(experimental_feed_hook=object))
    assert "experimental_feed_hook=<class 'object'> has no effect" in caplog.text
