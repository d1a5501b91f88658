import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator
from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools import weight_map

from . import keras_twin

TWIN = f"{keras_twin.__file__}:make_model"

MAPPING = {"hidden": "first/kernel", "output": "last/kernel"}


def model_fn(features, labels, mode, params):
    hidden = tf.get_variable("hidden", [4, 8])
    output = tf.get_variable("output", [8, 3])
    logits = tf.matmul(tf.nn.relu(tf.matmul(features, hidden)), output)
    predictions = {"logits": logits, "class": tf.argmax(logits, -1)}
    if mode == tpu.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = tf.reduce_mean(tf.square(logits))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    return tf.data.Dataset.from_tensors(tf.ones([4, 4])).repeat()


def receiver():
    features = tf.placeholder(tf.float32, [None, 4])
    return estimator.export.TensorServingInputReceiver(features, features)


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    return str(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def exported(model_dir, tmp_path_factory):
    est = tpu.TPUEstimator(
        model_fn, config=tpu.RunConfig(model_dir=model_dir), use_tpu=False, export_to_tpu=False
    )
    est.train(input_fn, steps=3)
    return est.export_saved_model(str(tmp_path_factory.mktemp("export")), receiver).decode()


@pytest.fixture
def inputs(tmp_path):
    path = str(tmp_path / "inputs.npz")
    np.savez(path, input=np.random.RandomState(0).normal(size=(5, 4)).astype(np.float32))
    return path


def written(tmp_path, mapping):
    path = tmp_path / "mapping.json"
    path.write_text(json.dumps(mapping))
    return str(path)


def test_draft_copy_check_and_save(exported, model_dir, inputs, tmp_path, capsys):
    draft = str(tmp_path / "draft.json")
    assert main(["map-weights", model_dir, TWIN, "--draft", draft]) == 0
    assert json.loads(pathlib.Path(draft).read_text()) == MAPPING
    out = str(tmp_path / "twin.weights.h5")
    check = ["--saved-model", exported, "--inputs", inputs, "--output", "logits"]
    assert main(["map-weights", exported, TWIN, "--mapping", draft, "--out", out, *check]) == 0
    printed = capsys.readouterr().out
    assert "Copied 2 variables.\nNot copied from the checkpoint: global_step\n" in printed
    assert "Output logits: the largest difference is" in printed
    model = keras_twin.make_model()
    model.load_weights(out)
    np.testing.assert_array_equal(
        model.get_layer("last").kernel.numpy(), tf.train.load_variable(model_dir, "output")
    )


def test_wrong_copies_are_found_and_not_saved(exported, inputs, tmp_path, capsys, monkeypatch):
    values = weight_map.read_variables(exported)
    values["output"] = values["output"] + 1e-3
    monkeypatch.setattr(weight_map, "read_variables", lambda path: values)
    out = tmp_path / "twin.weights.h5"
    command = ["map-weights", exported, TWIN, "--mapping", written(tmp_path, MAPPING)]
    command += ["--saved-model", exported, "--inputs", inputs, "--output", "logits"]
    assert main([*command, "--out", str(out)]) == 1
    assert "The outputs differ by more than 1e-05. Nothing was saved." in capsys.readouterr().out
    assert not out.exists()
    assert main([*command, "--out", str(out), "--tolerance", "0.1"]) == 0
    assert out.exists()


def test_models_with_dicts(exported, inputs):
    model = keras_twin.make_named_model()
    weight_map.assign(weight_map.read_variables(exported), model, MAPPING)
    x = np.load(inputs)["input"]
    found = weight_map.output_differences(exported, model, {"input": x})
    assert found.keys() == {"logits"}
    assert found["logits"] < 1e-6


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"nope": "first/kernel"}, r"Not in the checkpoint: \['nope'\]. It has \['global_step', "),
        ({"hidden": "nope"}, r"Not in the Keras model: \['nope'\]. It has \['first/kernel', "),
        ({"hidden": "first/kernel"}, r"no value: \['last/kernel'\]"),
        ({"hidden": "first/kernel", "output": "first/kernel"}, "Mapped to more than once"),
        (
            {"hidden": "last/kernel", "output": "first/kernel"},
            r"'hidden' has shape \(4, 8\), and 'last/kernel' of the Keras model has \(8, 3\)",
        ),
        ({"hidden": 5}, "Expected the path of a Keras variable"),
        ({"hidden": {"variable": "first/kernel", "permute": 1}}, "Expected the path"),
    ],
)
def test_bad_mappings_change_nothing(mapping, message, exported, tmp_path):
    model = keras_twin.make_model()
    before = [weight.numpy() for weight in model.weights]
    values = weight_map.read_variables(exported)
    with pytest.raises(ValueError, match=message):
        weight_map.assign(values, model, mapping)
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)
    with pytest.raises(SystemExit, match=f"map-weights: .*{message}"):
        main(["map-weights", exported, TWIN, "--mapping", written(tmp_path, mapping)])


def test_bad_checks(exported):
    model, x = keras_twin.make_model(), np.zeros([2, 4], np.float32)
    for arguments, message in [
        (({"x": x},), r"Signature 'serving_default' takes \['input'\]. Got \['x'\]"),
        (({"input": x},), "Name the one to compare with"),
        (({"input": x}, "nope"), "Not in the SavedModel's signatures"),
        (({"input": x}, "serving_default", "nope"), "Not in the signature's outputs"),
        (({"input": x}, "serving_default", "class"), r"shape \(2, 3\), the exported one \(2,\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            weight_map.output_differences(exported, model, *arguments)


def test_weights_are_written_to_a_file_of_weights():
    with pytest.raises(SystemExit, match=r"must end with .weights.h5"):
        main(["map-weights", "nowhere", TWIN, "--mapping", "m.json", "--out", "a.h5"])


def test_an_unbuilt_model(exported):
    with pytest.raises(SystemExit, match=r"has no variables\. Build it first"):
        main(["map-weights", exported, f"{keras_twin.__file__}:make_unbuilt_model"])


@pytest.mark.slow
def test_help_comes_without_tensorflow_at_work():
    command = [sys.executable, "-m", "tpu_estimator_compat"]
    listed = subprocess.run([*command, "-h"], capture_output=True, text=True, check=True).stdout
    assert "map-weights" in listed
    shown = subprocess.run([*command, "map-weights", "-h"], capture_output=True, text=True)
    assert "Without --mapping it writes a draft" in shown.stdout
    assert subprocess.run(command, capture_output=True).returncode == 2


@pytest.fixture
def copied(exported, model_dir, tmp_path):
    """A copy of the model_dir with checkpoints of two steps, the newer one without its data."""
    folder = pathlib.Path(shutil.copytree(model_dir, tmp_path / "copied"))
    for path in folder.glob("model.ckpt-3.*"):
        shutil.copy(path, folder / path.name.replace("-3.", "-4."))
    names = [f'all_model_checkpoint_paths: "model.ckpt-{n}"' for n in (3, 4)]
    (folder / "checkpoint").write_text("\n".join(['model_checkpoint_path: "model.ckpt-4"', *names]))
    next(folder.glob("model.ckpt-4.data-*")).write_bytes(b"")
    return folder


def test_an_older_checkpoint_is_taken_with_a_word(copied, capsys, caplog):
    assert main(["map-weights", str(copied), TWIN]) == 0
    assert json.loads(capsys.readouterr().out) == MAPPING
    assert "model.ckpt-4 cannot be read" in caplog.text
    assert "Falling back to checkpoint" in caplog.text


@pytest.mark.parametrize("name", ["copied", "copied/model.ckpt-4"])
def test_a_damaged_checkpoint_is_named(copied, name):
    for path in copied.glob("model.ckpt-3.*"):
        path.unlink()
    with pytest.raises(SystemExit, match=r"map-weights: Could not read checkpoint .*model.ckpt-4"):
        main(["map-weights", str(copied.parent / name), TWIN])


@pytest.mark.parametrize("content", [b"", b"not a zip file"])
def test_damaged_inputs_are_no_traceback(exported, model_dir, tmp_path, content):
    (tmp_path / "inputs.npz").write_bytes(content)
    words = ["--mapping", written(tmp_path, MAPPING), "--saved-model", exported]
    with pytest.raises(SystemExit, match="map-weights: "):
        main(["map-weights", model_dir, TWIN, *words, "--inputs", str(tmp_path / "inputs.npz")])
