"""Runs written files with Keras alone: `own.py FOLDER ...`, each as `prepare.py` made it.

A folder has `model.py` and `model.weights.h5` in `saved` and in `script`. Writes `BACKEND.json`
into each, the largest differences by what was compared, or the error.
"""

import importlib.util
import json
import pathlib
import sys
import traceback

import keras
import numpy as np


def part(arrays, prefix):
    """The values of a dict whose keys begin with a prefix; a bare value if that is the key."""
    if prefix in arrays:
        return arrays[prefix]
    return {
        k.removeprefix(prefix + "/"): v for k, v in arrays.items() if k.startswith(prefix + "/")
    }


def difference(found, expected):
    """Absolute below 1, relative above; of dicts, the largest."""
    if isinstance(expected, dict):
        assert set(found) >= set(expected), (sorted(found), sorted(expected))
        return max(difference(found[key], expected[key]) for key in expected)
    found = np.asarray(keras.ops.convert_to_numpy(found))
    assert found.shape == expected.shape, (found.shape, expected.shape)
    if expected.dtype.kind not in "fc":
        return float(np.mean(found != expected))
    found, expected = found.astype("float64"), expected.astype("float64")
    return float(np.max(np.abs(found - expected) / np.maximum(1, np.abs(expected)), initial=0))


def outputs(model, folder):
    """Of two batches of different sizes."""
    inputs, expected = (dict(np.load(folder / name)) for name in ("inputs.npz", "outputs.npz"))
    return max(
        difference(model.predict_on_batch(part(inputs, i)), part(expected, i)) for i in ("0", "1")
    )


def losses(model, folder):
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0
    train = dict(np.load(folder / "train.npz"))
    found = []
    for i in range(50):
        batch = part(train, str(i))
        model.reset_metrics()
        given = model.train_on_batch(part(batch, "x"), part(batch, "y"), return_dict=True)
        found.append(float(given["loss"]))
    return np.array(found)


def run(module, folder):
    model = module.make_model()
    model.load_weights(module.__file__.replace(".py", ".weights.h5"))
    yield "outputs", outputs(model, folder)
    saved = str(pathlib.Path(module.__file__).with_name(f"{keras.backend.backend()}.keras"))
    model.save(saved)
    yield "loaded", outputs(keras.models.load_model(saved, compile=False), folder)
    model.compile(jit_compile=True)
    yield "jit", outputs(model, folder)
    if pathlib.Path(module.__file__).parent.name == "script":
        model = module.make_model(compiled=True)
        model.load_weights(module.__file__.replace(".py", ".weights.h5"))
        if model.optimizer is None:
            return
        found, expected = losses(model, folder), np.load(folder / "losses.npy")
        np.save(folder / "found_losses.npy", found)
        yield "losses", float(np.max(np.abs(found / expected - 1)))
        inputs = part(dict(np.load(folder / "inputs.npz")), "0")
        yield (
            "after",
            difference(model.predict_on_batch(inputs), dict(np.load(folder / "after.npz"))),
        )


def main():
    for name in ("tpu_estimator_compat", "tf_keras", "tensorflow_estimator"):
        sys.modules[name] = None  # must not be imported
    for path in map(pathlib.Path, sys.argv[1:]):
        for file in sorted(path.glob("*/model.py")):
            spec = importlib.util.spec_from_file_location(f"{path.name}_{file.parent.name}", file)
            module = importlib.util.module_from_spec(spec)
            found = {}
            try:
                spec.loader.exec_module(module)
                sys.modules[spec.name] = module
                for name, value in run(module, path):
                    found[name] = value
            except Exception:
                found["error"] = traceback.format_exc()
            written = file.with_name(f"{keras.backend.backend()}.json")
            written.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
