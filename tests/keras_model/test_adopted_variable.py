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
