"""`check_same_as_original`: its script and its refusals; with the original, and with sessions."""

import ast
import sys

import numpy as np
import pytest
from support.original import require

from tpu_estimator_compat.testing import check_same_as_original
from tpu_estimator_compat.testing.checks import same_as_original
from tpu_estimator_compat.testing.subject import Subject
from tpu_estimator_compat.tools.compare import environment

from ..models import X, Y, failure
from ..portable_model import by_release, by_runtime, linear

FEATURES, LABELS, PARAMS = {"x": X}, X[:, :1] * 2.0, {"rate": 0.1}


@pytest.fixture
def original(monkeypatch):
    python = require()
    monkeypatch.setattr(environment, "find_or_make", lambda release: python)


@pytest.mark.slow
@pytest.mark.parity
def test_same(original):
    check_same_as_original(linear, FEATURES, LABELS, PARAMS, steps=3)


@pytest.mark.slow
@pytest.mark.parity
def test_other_rate(original):
    found = failure(check_same_as_original, by_release, FEATURES, LABELS, PARAMS, steps=3)
    assert "kernel" in found
    assert "loss" in found
    assert "by TensorFlow" in found


@pytest.mark.slow
def test_with_sessions_where_the_original_cannot_be_had(monkeypatch):
    def refuse(release):
        raise environment.Unavailable("no such Python.")

    monkeypatch.setattr(environment, "find_or_make", refuse)
    check_same_as_original(by_release, FEATURES, LABELS, PARAMS, steps=3)
    found = failure(check_same_as_original, by_runtime, FEATURES, LABELS, PARAMS, steps=3)
    assert "the original cannot run: no such Python." in " ".join(found.split())
    assert "kernel" in found


def test_script_has_the_arrays_and_the_params(tmp_path):
    features = {"x": X, "pair": (Y, np.array([b"a"] * 8))}
    params = {"rates": [0.1, None], "name": "it's {x}"}
    script = same_as_original._script(Subject(linear, features, None, params), tmp_path, 7)
    given = {
        node.targets[0].id: ast.unparse(node.value)
        for node in ast.parse(script).body
        if isinstance(node, ast.Assign)
    }
    arrays = np.load(tmp_path / "arrays.npz")
    read = eval(given["features"], {"arrays": arrays})
    np.testing.assert_array_equal(read["x"], X)
    np.testing.assert_array_equal(read["pair"][0], Y)
    assert read["pair"][1].tolist() == [b"a"] * 8
    assert given["labels"] == "None"
    assert ast.literal_eval(given["params"]) == params
    assert "import testing.portable_model as tested" in script
    assert "max_steps=7" in script


def nested():
    def model_fn(features, labels, mode, params):
        return features, labels, mode, params

    return model_fn


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"model_fn": nested()}, ValueError, "must be a function at the top of a module"),
        ({"params": {"rate": np.float32(1)}}, ValueError, "params must be plain values"),
        ({"params": {"function": print}}, ValueError, "params must be plain values"),
        ({"steps": 0}, ValueError, "steps must be positive, got 0"),
        ({"labels": LABELS[:3]}, ValueError, r"'labels': \(3, 1\)"),
    ],
)
def test_bad_arguments(given, error, said, monkeypatch):
    monkeypatch.setattr(environment, "find_or_make", lambda release: "python")
    arguments = {"model_fn": linear, "features": FEATURES, "labels": LABELS, "params": PARAMS}
    with pytest.raises(error, match=said):
        check_same_as_original(**{**arguments, **given})


def test_a_function_of_the_script_itself(monkeypatch):
    """The original's environment would import its own `__main__`."""
    model_fn = nested()
    monkeypatch.setattr(model_fn, "__module__", "__main__")
    monkeypatch.setattr(model_fn, "__qualname__", "model_fn")
    monkeypatch.setattr(sys.modules["__main__"], "model_fn", model_fn, raising=False)
    with pytest.raises(ValueError, match="none of a script, notebook or function"):
        check_same_as_original(model_fn, FEATURES, LABELS, PARAMS)
