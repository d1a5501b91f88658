"""The file that is written of a program: its text, and that it runs.

The texts are in `support/to_keras/written`; `python test_text.py` writes them anew.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import TESTS
from tools.to_keras.running import program_of

from tpu_estimator_compat import v1
from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras import text
from tpu_estimator_compat.tools.to_keras.alone import variable_at
from tpu_estimator_compat.tools.to_keras.classes import divide
from tpu_estimator_compat.tools.to_keras.layers import recognize
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.text.layout import lay_out
from tpu_estimator_compat.tools.to_keras.training import Metric, Training

WRITTEN = TESTS / "support/to_keras/written"
X = {"x": ("float32", (None, 8))}
IMAGE = {"image": ("float32", (None, 8, 8, 4))}
IDS = {"ids": ("int32", (None, 6))}
scope = tf.compat.v1.variable_scope
dense = v1.layers.dense


def variable(name, shape):
    return tf.compat.v1.get_variable(name, shape)


def mlp(x):
    x = dense(x, 16, tf.nn.relu, name="hidden")
    logits = dense(x, 3, name="logits")
    return {"class": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}


def residual_layers(x, count, name="layer"):
    for i in range(count):
        with scope(f"{name}_{i}"):
            y = dense(x, 12, tf.nn.relu, name="inner")
            x += dense(y, 8, name="outer")
    return x


def equal_blocks(x):
    return residual_layers(x, 2)


def chain_of_twelve(x):
    return residual_layers(x, 12)


def two_chains(x):
    return residual_layers(residual_layers(x, 2, "down"), 3, "up")


def conv(x, filters, strides=1, name=None, size=3):
    x = v1.layers.conv2d(x, filters, size, strides, "same", use_bias=False, name=name)
    return v1.layers.batch_normalization(x, name=name and f"{name}_norm")


def filters(image):
    for i, n in enumerate((8, 16)):
        with scope(f"block_{i}"):
            image = tf.nn.relu(conv(image, n, 2, "conv"))
            image = tf.nn.relu(conv(image, 2 * n, 1, "wide"))
    return tf.reduce_mean(image, [1, 2])


def residual_network(image):
    for i, n in enumerate((8, 8, 16, 16)):
        with scope(f"block_{i}"):
            strides = 2 if n == 16 and i == 2 else 1
            y = tf.nn.relu(conv(image, n, strides, "conv1"))
            y = conv(y, n, 1, "conv2")
            if i in (0, 2):
                image = conv(image, n, strides, "shortcut", 1)
            image = tf.nn.relu(y + image)
    return dense(tf.reduce_mean(image, [1, 2]), 5, name="logits")


def functions(image):
    """Blocks without scopes, with sizes of their own."""

    def block(x, i, filters, strides):
        y = tf.nn.relu(conv(x, filters, strides))
        y = conv(y, filters) * variable(f"scale_{i}", [filters])
        return tf.nn.relu(y + conv(x, filters, strides, size=1))

    x = tf.nn.relu(conv(image, 8))
    for i, (filters, strides) in enumerate(((8, 1), (16, 2), (16, 1))):
        x = block(x, i, filters, strides)
    return tf.reduce_mean(x, [1, 2])


def shared_scope(x):
    y = x
    for _ in range(2):
        with scope("steps", reuse=tf.compat.v1.AUTO_REUSE):
            x = x + dense(dense(x, 12, tf.nn.tanh, name="into"), 8, name="out")
    return {"twice": x, "norm": tf.norm(x - y, axis=-1)}


def tied_weight(ids):
    with scope("encoder"):
        table = variable("table", [20, 8])
        x = tf.nn.embedding_lookup(table, ids) * 8**0.5
        with scope("mixer"):
            x = x + dense(dense(x, 16, tf.nn.relu, name="in"), 8, name="out")
    with scope("head"):
        x = dense(x, 8, tf.nn.tanh, name="transform")
        bias = variable("bias", [20])
        return {"logits": tf.matmul(x[:, 0], table, transpose_b=True) + bias}


def tied_before(x):
    for i in range(2):
        with scope(f"coder_{i}"):
            kernel = variable("kernel", [12, 8])
            code = tf.nn.relu(tf.matmul(x, kernel, transpose_b=True))
            x = dense(tf.matmul(code, kernel), 8, tf.nn.tanh, name="out")
    return {"x": x}


def two_heads(x):
    x = dense(x, 16, tf.nn.relu, name="trunk")
    found = {}
    for name, size in (("policy", 4), ("value", 1)):
        with scope(name):
            found[name] = dense(dense(x, 2 * size, tf.nn.relu, name="hidden"), size, name="out")
    return found


def branches(x):
    y = dense(x, 8, name="into")
    scale = variable("scale", [8])
    return tf.cond(
        tf.reduce_mean(x) > 0,
        lambda: (y * scale, tf.reduce_sum(y, -1)),
        lambda: (tf.exp(y - tf.reduce_max(y, -1, keepdims=True)), tf.reduce_sum(y * y, -1)),
    )[0]


def loop(x):
    scale = variable("scale", [8])

    def body(i, x, change):
        new = tf.tanh(x * scale) + 0.5 * x
        return i + 1, new, tf.reduce_max(tf.abs(new - x))

    start = tf.constant(0), x, tf.constant(1.0)
    found = tf.while_loop(lambda i, x, change: (i < 5) & (change > 0.01), body, start)
    return {"x": found[1], "rounds": tf.fill([tf.shape(x)[0]], found[0])}


def scan(x):
    scale = variable("scale", [2])
    parts = tf.transpose(tf.reshape(x, [-1, 4, 2]), [1, 0, 2])
    states = tf.scan(lambda h, part: tf.tanh(h * scale + part), parts, tf.zeros_like(parts[0]))
    return {"last": states[-1], "mean": tf.reduce_mean(states, 0)}


def weight_before_its_layer(ids):
    """Reads a layer's weight in what comes first, but for the order of calls."""
    table = variable("table", [20, 8])
    mean = tf.matmul(tf.one_hot(ids[:, 0], 20), table)
    return tf.concat([mean, tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1)], 1)


def crossing_scopes(x):
    with scope("a"):
        first = dense(x, 8, name="first")
    with scope("b"):
        second = dense(first, 8, name="second")
    with scope("a", reuse=tf.compat.v1.AUTO_REUSE), tf.compat.v1.name_scope("a/"):
        third = dense(second, 8, name="third")
    with scope("b", reuse=tf.compat.v1.AUTO_REUSE), tf.compat.v1.name_scope("b/"):
        return dense(third, 8, name="fourth")


def lookalikes(x):
    """Blocks that differ in an operation, and a constant table."""
    table = np.arange(24, dtype=np.float32).reshape(8, 3)
    for i, function in enumerate((tf.nn.tanh, tf.nn.sigmoid)):
        with scope(f"gate_{i}"):
            gate = function(dense(x, 8, name="gate"))
            x = x * gate + dense(x, 8, name="carry") * (1.0 - gate) ** (2 + i)
    return x @ table


CASES = {
    each.__name__: (each, specs)
    for each, specs in (
        (mlp, X),
        (equal_blocks, X),
        (chain_of_twelve, X),
        (two_chains, X),
        (filters, IMAGE),
        (residual_network, IMAGE),
        (functions, IMAGE),
        (shared_scope, X),
        (tied_weight, IDS),
        (tied_before, X),
        (two_heads, X),
        (branches, X),
        (loop, X),
        (scan, X),
        (weight_before_its_layer, IDS),
        (crossing_scopes, X),
        (lookalikes, X),
    )
}


def written(name):
    program, weights, feeds, results = program_of(*CASES[name])
    recognize(program, weights)
    found = text.write(program)
    found.text = re.sub(r"(test_text\.py):\d+", r"\1", found.text)
    return found, feeds, results


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"written_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=2e-5, err_msg=key)


@pytest.mark.parametrize("name", CASES)
def test_the_file_is_as_one_would_write_it_and_runs(name, tmp_path):
    found, feeds, results = written(name)
    assert found.text == (WRITTEN / f"{name}.py").read_text()
    path = tmp_path / f"{name}.py"
    path.write_text(found.text)
    model = loaded(path).make_model()
    variables = {path: variable_at(model, path) for path in found.weights}
    assert {id(v) for v in variables.values()} == {id(v) for v in model.weights}
    for each, bound in found.weights.items():
        variables[each].assign(bound.value())
    assert_close(model(feeds), results)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(again.predict(feeds, verbose=0), results)
    fewer = {key: value[:2] for key, value in feeds.items()}
    if name != "branches":  # which take the mean of a batch
        assert_close(again(fewer), {key: value[:2] for key, value in results.items()})


def test_the_files_are_clean():
    rules = ["--isolated", "--select", "E,F,W,I,N,Q", "--line-length", "100"]
    command = [sys.executable, "-m", "ruff", "check", *rules, WRITTEN]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


ON_JAX = """
import importlib, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    module = importlib.import_module(name)
    model = module.make_model()
    shapes = next(iter(model._build_shapes_dict.values()))
    dtype = "int32" if "ids" in shapes else "float32"
    given = {k: np.zeros((3, *shape[1:]), dtype) for k, shape in shapes.items()}
    found = model.predict(given, verbose=0)
    assert all(np.isfinite(each).all() for each in found.values()), name
    print(name)
"""


def test_the_files_run_on_jax():
    given = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": ""}
    names = ["filters", "shared_scope", "tied_weight", "branches", "loop", "scan"]
    command = [sys.executable, "-c", ON_JAX, str(WRITTEN), *names]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **given})
    assert done.stdout.split() == names, done.stderr


@pytest.mark.parametrize(
    ("name", "scopes"),
    [
        ("mlp", []),
        ("equal_blocks", ["layer_0", "layer_1"]),
        ("shared_scope", ["steps", "steps_1"]),
        ("tied_weight", ["encoder", "encoder/mixer", "head"]),
    ],
)
def test_scopes_that_become_parts(name, scopes):
    program, weights, _, _ = program_of(*CASES[name])
    recognize(program, weights)
    assert sorted("/".join(part.scope) for part in divide(program).parts() if part.scope) == scopes


def source(kind, text_of_it, shape):
    node = g.Node(kind, "source", attrs={"key": text_of_it, "text": text_of_it})
    return node.output(shape, "float32")


def computed(kind, inputs, shape, **attrs):
    return g.Node(kind, f"loss/{kind}", inputs, attrs).output(shape, "float32")


def test_what_trains(tmp_path):
    """A loss whose values may not take the names of its arguments, a metric named like a layer.

    It reads a weight that the model reads.
    """

    def build(x):
        scale = v1.get_variable("scale", [], initializer=v1.ones_initializer())
        return {"logits": dense(x, 1, name="logits") * scale}

    program, weights, feeds, _ = program_of(build, X)
    weights["logits/bias"].trainable = False
    recognize(program, weights)
    y, logits = source(g.LABEL, "y", (None, 1)), source(g.INPUT, 'y_pred["logits"]', (None, 1))
    x = source(g.INPUT, 'x["x"]', (None, 8))
    squared = computed("SquaredDifference", [logits, y], (None, 1))
    both = computed("AddV2", [computed("Exp", [squared], (None, 1)), squared], (None, 1))
    weighed = computed(
        "Mul", [both, computed("Max", [x, g.constant([1])], (None, 1), keep_dims=True)], (None, 1)
    )
    scale = g.Node(g.WEIGHT, "scale", attrs={"weight": weights["scale"]}).output((), "float32")
    loss = computed("Mul", [computed("Mean", [weighed, g.constant([0, 1])], ()), scale], ())
    of_loss = g.Program({"x": x, "logits": logits}, {"loss": loss}, {"y": y})
    of_metric = g.Program({"logits": logits}, {"y_true": y, "y_pred": logits}, {"y": y})
    made = g.Code('keras.metrics.MeanSquaredError(name="logits")')
    training = Training(
        program,
        of_loss,
        g.Code("keras.optimizers.SGD(0.1)"),
        metrics=[Metric("logits", made, of_metric)],
    )
    found = text.write(program, training, notes=["A note."])
    assert "    def call(self, features, training=False):" in found.text
    assert "A note." in found.text.split("import keras")[0]
    assert 'self.logits_metric.update_state(y_true=y, y_pred=y_pred["logits"])' in found.text
    path = tmp_path / "trained.py"
    path.write_text(found.text)
    model = loaded(path).make_model(compiled=True)
    assert [v.path.split("/")[-1] for v in model.trainable_variables] == ["scale", "kernel"]
    labels = np.ones((5, 1), np.float32)
    y_pred = model(feeds)
    error = (np.asarray(y_pred["logits"]) - labels) ** 2
    expected = np.mean((np.exp(error) + error) * feeds["x"].max(1, keepdims=True)) * model.scale
    np.testing.assert_allclose(model.compute_loss(feeds, labels, y_pred), expected, rtol=1e-4)
    logs = model.train_on_batch(feeds, labels, return_dict=True)
    np.testing.assert_allclose(logs["logits"], error.mean(), rtol=1e-4)


def test_training_is_passed_on():
    """By the text: Keras does not pass it on by itself where JAX trains."""
    program, weights, _, _ = program_of(*CASES["equal_blocks"])
    recognize(program, weights)
    for node in program.nodes():
        if node.kind == g.LAYER and node.layer.name == "inner":
            layer = g.Layer("layers.Dropout", "dropout", (), [0.5], call={"training": g.TRAINING})
            dropout = g.Node(g.LAYER, f"{'/'.join(node.scope)}/dropout", attrs={"layer": layer})
            [given] = node.outputs
            program.replace(given, dropout.output(given.shape, given.dtype))
            dropout.inputs = [given]
    lines = [line.strip() for line in text.write(program).text.splitlines()]
    assert "def call(self, x, training=False):" in lines
    assert "y = self.dropout(y, training=training)" in lines
    assert "x = layer(x, training=training)" in lines


def test_what_keras_has_not(monkeypatch):
    """A function of the file's own, or a line of TensorFlow: another backend is told at once."""
    program, _, feeds, results = program_of(
        lambda x: tf.math.lgamma(tf.nn.local_response_normalization(x, 1) ** 2 + 1), IMAGE
    )
    code = text.write(program).text
    names = {}
    exec(code, names)
    assert_close(names["make_model"]()(feeds), results)
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ImportError, match=r"Set KERAS_BACKEND=tensorflow.*tf\.raw_ops\.Lgamma\."):
        exec(code, {})


def test_what_is_tensorflows():
    code = '"""As tf.metrics does."""\nx = "tf.a" + tf.b.c(tf.d)  # not tf.e\n'
    assert text.of_tensorflow(code) == {2: {"tf.b.c", "tf.d"}}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            f"    x = f({'a' * 50}, {'b' * 40})",
            ["    x = f(", f"        {'a' * 50}, {'b' * 40}", "    )"],
        ),
        (
            f"x = f({'a' * 50}, g({'b' * 50}))",
            ["x = f(", f"    {'a' * 50},", f"    g({'b' * 50}),", ")"],
        ),
        (
            f"return {'a' * 50} + {'b' * 50}",
            ["return (", f"    {'a' * 50}", f"    + {'b' * 50}", ")"],
        ),
        (
            f"x = [f({'a' * 60}) for a in {'b' * 30}]",
            ["x = [", f"    f({'a' * 60})", f"    for a in {'b' * 30}", "]"],
        ),
    ],
)
def test_long_lines_are_broken(line, expected):
    assert lay_out([line]) == expected


if __name__ == "__main__":
    for each in CASES:
        (WRITTEN / f"{each}.py").write_text(written(each)[0].text)


def test_numbers_as_an_author_writes_them():
    numbers = [-1e9, 1e5, 10000.0, 250000.0, np.float32(0.044715), np.float32(0.9), 1e-12, 0.0]
    expected = "-1e9 1e5 10000.0 250000.0 0.044715 0.9 1e-12 0.0"
    assert " ".join(map(literal, numbers)) == expected
