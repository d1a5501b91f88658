import keras
import numpy as np
import pytest

from tpu_estimator_compat.tools import weight_map


def test_transposed_and_reshaped():
    model = keras.Sequential([keras.Input([6]), keras.layers.Dense(4)])
    values = {"k": np.arange(24.0).reshape(4, 6), "b": np.arange(4.0).reshape(2, 2)}
    mapping = {
        "k": {"variable": model.weights[0].path, "transpose": [1, 0]},
        "b": {"variable": model.weights[1].path, "reshape": True},
    }
    assert weight_map.assign(values, model, mapping) == []
    np.testing.assert_array_equal(model.weights[0].numpy(), values["k"].T)
    np.testing.assert_array_equal(model.weights[1].numpy(), np.arange(4.0))


def test_a_draft_goes_by_shape_name_and_order():
    model = keras.Sequential(
        [keras.Input([4])] + [keras.layers.Dense(4, name=f"layer_{i}") for i in range(3)],
        name="twin",
    )
    values = {
        f"encoder/layer_{i}/dense/{part}": np.zeros([4, 4] if part == "kernel" else [4])
        for i in (2, 0, 1)
        for part in ("bias", "kernel")
    }
    values |= {f"{name}/adam_m": value for name, value in values.items()}
    values["other"] = np.zeros([7])
    assert weight_map.propose(values, model) == {
        f"encoder/layer_{i}/dense/{part}": f"twin/layer_{i}/{part}"
        for i in range(3)
        for part in ("kernel", "bias")
    }


def test_variables_of_one_path():
    parts = [keras.Sequential([keras.layers.Dense(4, name="a")], name="same") for _ in range(2)]

    class Both(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = parts

        def call(self, x):
            return parts[1](parts[0](x))

    model = Both()
    model(np.zeros([1, 4], np.float32))
    with pytest.raises(ValueError, match=r"have the same path: \['.*same/a/bias'"):
        weight_map.propose({}, model)
