import numpy as np
from support.legacy_models import train_input_fn

from .fitting import dataset


def test_variables_carry_their_tf1_names_each_once(estimator):
    model = estimator.keras_model(train_input_fn)
    paths = [v.path for v in model.variables]
    assert sorted(paths) == sorted(set(paths))
    assert {"hidden", "output", "global_step", "hidden/Adam"} <= set(paths)
    assert [v.path for v in model.trainable_variables] == ["hidden", "output"]
    assert model.count_params() == sum(int(np.prod(v.shape)) for v in model.variables)
    hidden = model.trainable_variables[0]
    hidden.assign(np.full((4, 8), 0.5, np.float32))
    model.fit(dataset(), steps_per_epoch=1, verbose=0)
    assert np.abs(hidden.numpy() - 0.5).max() < 0.1


def test_weights_can_be_saved_and_loaded(estimator, tmp_path):
    model = estimator.keras_model(train_input_fn)
    model.fit(dataset(), epochs=1, verbose=0)
    expected = [v.numpy() for v in model.variables]
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    model.fit(dataset(), epochs=1, verbose=0)
    model.load_weights(path)
    for variable, value in zip(model.variables, expected, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
