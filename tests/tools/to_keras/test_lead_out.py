"""`to-keras` on a small model; `test_lead_out_programs.py` has models of its users."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.__main__ import main
from tpu_estimator_compat.tools.to_keras import convert

v1 = tf.compat.v1


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("exports") / "1")
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4])
        with v1.variable_scope("tower", use_resource=True):
            kernel = v1.get_variable("kernel", [4, 3])
            v1.get_variable("left", [2])
        session.run(v1.global_variables_initializer())
        outputs = {"y": tf.nn.relu(tf.matmul(x, kernel)), "best": tf.argmax(x, 1)}
        v1.saved_model.simple_save(session, path, {"x": x}, outputs)
    return path


@pytest.fixture
def changed(monkeypatch):
    """`changed(old, new)`: the text that is written from now on has `new` in place of `old`."""

    def of(old, new):
        def made(program):
            converted = before(program)
            assert old in converted.text
            converted.text = converted.text.replace(old, new)
            return converted

        before = convert.convert
        monkeypatch.setattr(convert, "convert", made)

    return of


def test_a_saved_model(exported, tmp_path, capsys, forks):
    """The file serves in a process that cannot import this package."""
    out = tmp_path / "model.py"
    assert main(["to-keras", "--out", str(out), exported]) == 0
    said = capsys.readouterr().out
    assert f"To Keras: equal up to rounding; wrote {out}," in " ".join(said.split())
    assert "Variables: 1 used, 1 unused.\n\nUnused variables:\n  - tower/left\n" in said
    assert {path.name for path in tmp_path.iterdir()} == {"model.py", "model.weights.h5"}
    assert "tpu_estimator_compat" not in out.read_text()
    before = out.read_bytes()
    assert main(["to-keras", "--out", str(out), exported]) == 2
    assert "model.weights.h5 already there. Name another file, or" in capsys.readouterr().err
    assert main(["to-keras", "--out", str(out), "--replace", exported]) == 0
    assert out.read_bytes() == before

    code = (
        "import sys; sys.modules['tpu_estimator_compat'] = None; import model, numpy as np; "
        "m = model.make_model(); m.load_weights('model.weights.h5'); "
        "print(np.asarray(m({'x': np.eye(4, dtype='float32')})['y']).tolist())"
    )
    done = forks.run("-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kernel = tf.train.load_variable(f"{exported}/variables/variables", "tower/kernel")
    np.testing.assert_allclose(json.loads(done.stdout), np.maximum(kernel, 0), rtol=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '"relu"',
            '"tanh"',
            "the Keras model differs from the original; nothing was written",
        ),
        ("ops.argmax(", "ops.argmin(", "the Keras model differs from the original"),
        ("ops.argmax(", "ops.nosuch(", "the Keras model does not run; nothing was written"),
    ],
    ids=["a float", "an integer", "an error"],
)
def test_a_wrong_file_is_not_left_behind(old, new, said, exported, tmp_path, changed, capsys):
    changed(old, new)
    assert main(["to-keras", "--out", str(tmp_path / "model.py"), exported]) == 1
    assert said in " ".join(capsys.readouterr().out.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--signature", "nosuch"], r"has no signature 'nosuch'; it has \['serving_default'\]"),
        (["--tags", "train,tpu"], "could not be found in SavedModel"),
    ],
)
def test_what_a_saved_model_lacks(words, said, exported, tmp_path, capsys):
    assert main(["to-keras", "--out", str(tmp_path / "model.py"), *words, exported]) == 2
    [line] = [x for x in capsys.readouterr().err.splitlines() if "error: " in x]
    assert re.search(said, line)
    assert list(tmp_path.iterdir()) == []
