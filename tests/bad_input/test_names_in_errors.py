"""No error names what only this package's code can call: a private name, or an inner function."""

import ast
import builtins
import pathlib
import re

import keras
import pytest

import tpu_estimator_compat as tpu
import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat import embedding, estimator, layers, testing

PACKAGE = pathlib.Path(tpu.__file__).parent
INNER = ("config", "engine", "keras_model", "spec", "tools")
PLACES = [
    *(tpu, tpu.tpu, tf, tf.train, estimator, estimator.tpu, embedding, layers, testing, builtins),
    *(keras.Model, keras.metrics.Metric),
]
PUBLIC = {name for place in PLACES for name in dir(place)}
TREES = {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
OURS = {
    node.name
    for path, tree in TREES.items()
    if path.relative_to(PACKAGE).parts[0] in INNER
    for node in ast.walk(tree)
    if isinstance(node, ast.FunctionDef | ast.ClassDef)
} - PUBLIC


def inner_names(text):
    private = re.findall(r"(?<![\w./<\"'}-])_[a-z]\w*", text)
    called = re.findall(r"(?<![\w.])([A-Za-z]\w+)\((?!s\))", text)
    classes = re.findall(r"(?<![\w.])[A-Z][a-z]\w*[A-Z]\w*", text)
    return [*private, *OURS.intersection(called), *OURS.intersection(classes)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Call _enter first.", ["_enter"]),
        ("Pass it to check_element(element).", ["check_element"]),
        ("StepPlan has no loss.", ["StepPlan"]),
        ("Train with fit() or TPUEstimator.train; {}_batch_size; 2 operation(s)", []),
    ],
)
def test_what_counts_as_inner(text, found):
    assert inner_names(text) == found


def texts(node):
    if isinstance(node, ast.JoinedStr):
        yield "".join(v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
    elif isinstance(node, ast.Constant):
        yield str(node.value)
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def test_no_error_names_what_users_cannot_call():
    found = {
        f"{path.relative_to(PACKAGE)}:{node.lineno}": (names, text)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.exc is not None
        for text in texts(node.exc)
        if (names := inner_names(text))
    }
    assert found == {}
