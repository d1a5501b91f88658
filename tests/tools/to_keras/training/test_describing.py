"""A training that is led out goes on as the original would."""

import json
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tools.to_keras.training.described import Described, led_out, losses, original

import tpu_estimator_compat.v1 as tf1
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.spec import EstimatorSpec
from tpu_estimator_compat.tools.to_keras import check, convert, samples, script
from tpu_estimator_compat.tools.to_keras.training.steps import step_of

v1 = tf.compat.v1
random = np.random.default_rng(0)
IMAGES = random.normal(size=(8, 6, 6, 2)).astype("float32")
LABELS = random.integers(0, 5, 8)


def images():
    return tf.data.Dataset.from_tensors(({"image": IMAGES}, LABELS)).repeat()


def spec_of(mode, logits, optimizer, loss=None, clip=None, labels=None, metrics=None):
    predictions = {"class": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    if mode == "infer":
        return EstimatorSpec(mode, predictions=predictions)
    step = v1.train.get_global_step()
    optimizer = optimizer(step)
    pairs = optimizer.compute_gradients(loss)
    if clip is not None:
        pairs = clip(pairs)
    update = v1.get_collection("update_ops")
    train_op = tf.group(optimizer.apply_gradients(pairs, step), *update)
    return EstimatorSpec(mode, predictions, loss, train_op, metrics)


def clip_by_global_norm(pairs):
    gradients, variables = zip(*pairs, strict=True)
    return zip(tf.clip_by_global_norm(gradients, 0.5)[0], variables, strict=True)


def clip_each(clip):
    return lambda pairs: [(clip(gradient), variable) for gradient, variable in pairs]


def mlp(optimizer, clip=None, regularized=""):
    def model_fn(features, labels, mode):
        x = v1.reshape(features["image"], [-1, 72])
        x = tf1.layers.dense(x, 8, tf.nn.tanh, name="hidden")  # smooth: 50 losses are compared
        logits = tf1.layers.dense(x, 5, name="out")
        loss = None
        if labels is not None:
            loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
            for variable in v1.trainable_variables() if regularized else ():
                if regularized in variable.name:
                    loss += 0.01 * v1.nn.l2_loss(variable)
        return spec_of(mode, logits, optimizer, loss, clip)

    return model_fn


def residual(features, labels, mode):
    def normalized(x):
        return tf1.layers.batch_normalization(x, momentum=0.9, training=mode == "train")

    x = tf1.layers.conv2d(features["image"], 4, 3, padding="same", use_bias=False)
    for _ in range(2):
        before = x
        x = tf.nn.elu(normalized(x))
        x = tf1.layers.conv2d(x, 4, 3, padding="same", use_bias=False) + before
    logits = tf1.layers.dense(v1.reduce_mean(x, [1, 2]), 5)
    loss = None
    if labels is not None:
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        decayed = [v for v in v1.trainable_variables() if "batch_normalization" not in v.name]
        loss += 2e-3 * v1.add_n([v1.nn.l2_loss(variable) for variable in decayed])
    return spec_of(mode, logits, momentum_by_steps, loss)


def momentum_by_steps(step):
    rate = v1.train.piecewise_constant(step, [5, 8], [0.1, 0.02, 0.01])
    return v1.train.MomentumOptimizer(rate, 0.9)


def rate_variable():
    return v1.get_variable("rate", initializer=0.1, trainable=False)


def warmed_up(step):
    rate = 0.01 * v1.minimum(1.0, v1.cast(step + 1, tf.float32) / 20.0)
    return v1.train.AdamOptimizer(rate)


train = v1.train


class OfKeras2(train.Optimizer):
    """Adagrad by the operation that Keras 2 takes."""

    def __init__(self, epsilon=1e-7):
        super().__init__(False, "adagrad")
        self.epsilon = epsilon

    def apply_gradients(self, pairs, global_step=None, name=None):
        steps = [global_step.assign_add(1)]
        for g, v in pairs:
            slot = v1.get_variable(f"{v.op.name}/acc", initializer=0.1 * tf.ones(v.shape))
            given = {"lr": 0.1, "epsilon": self.epsilon, "grad": g}
            steps.append(
                tf.raw_ops.ResourceApplyAdagradV2(var=v.handle, accum=slot.handle, **given)
            )
            v1.get_collection_ref("trainable_variables").remove(slot)
        return v1.group(*steps)


ROWS = {
    "adagrad of Keras 2": (
        mlp(lambda _: OfKeras2()),
        "Adagrad(learning_rate=0.1)",
    ),
    "adam": (mlp(lambda _: train.AdamOptimizer(0.01)), "Adam(learning_rate=0.01, epsilon=1e-08)"),
    "warm-up": (mlp(warmed_up), "Adam(learning_rate=LearningRate(), epsilon=1e-08)"),
    "gradient descent": (
        mlp(
            lambda step: train.GradientDescentOptimizer(
                train.exponential_decay(0.1, step, 4, 0.5, staircase=True)
            )
        ),
        "SGD(learning_rate=keras.optimizers.schedules.ExponentialDecay(initial_learning_rate=0.1, "
        "decay_rate=0.5, decay_steps=4, staircase=True))",
    ),
    "polynomial": (
        mlp(
            lambda step: train.GradientDescentOptimizer(
                train.polynomial_decay(rate_variable(), step, 9, 0.01, power=2.0)
            )
        ),
        "SGD(learning_rate=keras.optimizers.schedules.PolynomialDecay(initial_learning_rate=0.1, "
        "decay_steps=9, power=2.0, end_learning_rate=0.01))",
    ),
    "cosine": (
        mlp(lambda step: train.GradientDescentOptimizer(train.cosine_decay(0.1, step, 9, 0.2))),
        "SGD(learning_rate=keras.optimizers.schedules.CosineDecay(initial_learning_rate=0.1, "
        "decay_steps=9, alpha=0.2))",
    ),
    "inverse time": (
        mlp(
            lambda step: train.GradientDescentOptimizer(
                train.inverse_time_decay(0.1, step, 4, 0.5, staircase=True)
            )
        ),
        "SGD(learning_rate=keras.optimizers.schedules.InverseTimeDecay(initial_learning_rate=0.1, "
        "decay_rate=0.5, decay_steps=4, staircase=True))",
    ),
    "momentum": (
        mlp(lambda _: train.MomentumOptimizer(0.05, 0.9, use_nesterov=True), None, "kernel"),
        "SGD(learning_rate=0.05, momentum=0.9, nesterov=True)",
    ),
    "rms_prop": (
        mlp(lambda _: train.RMSPropOptimizer(0.01, 0.8, momentum=0.5, centered=True)),
        "RMSprop(learning_rate=0.01, centered=True, rho=0.8, momentum=0.5, epsilon=1e-10)",
    ),
    "adagrad": (
        mlp(lambda _: train.AdagradOptimizer(0.1), clip_by_global_norm),
        "Adagrad(learning_rate=0.1, epsilon=0.0, global_clipnorm=0.5)",
    ),
    "adadelta": (
        mlp(lambda _: train.AdadeltaOptimizer(1.0), clip_each(lambda g: tf.clip_by_norm(g, 0.2))),
        "Adadelta(learning_rate=1.0, epsilon=1e-08, clipnorm=0.2)",
    ),
    "ftrl": (
        mlp(
            lambda _: train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
            clip_each(lambda g: tf.clip_by_value(g, -0.1, 0.1)),
        ),
        "Ftrl(learning_rate=0.1, l1_regularization_strength=0.01, clipvalue=0.1)",
    ),
    "residual": (
        residual,
        "Momentum(learning_rate=keras.optimizers.schedules.PiecewiseConstantDecay(boundaries=[5, "
        "8], values=[0.1, 0.02, 0.01]), momentum=0.9)",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_goes_on(name, tmp_path):
    """50 losses of the Keras model from the checkpoint on, and its predictions after these."""
    model_fn, optimizer = ROWS[name]
    modes, training = led_out(model_fn, images, tmp_path)
    assert training.optimizer.text.removeprefix("keras.optimizers.") == optimizer
    assert training.notes == []
    assert training.step == modes.step == 3
    found = losses(modes, training, 50)
    np.testing.assert_allclose(found, original(modes, 50), rtol=1e-4)


IDS = random.integers(0, 5, (8, 3))


def words():
    return tf.data.Dataset.from_tensors(({"ids": IDS}, LABELS)).repeat()


def bag(optimizer, frozen=False, scaled=1.0, norm=None):
    """Of embeddings, whose gradients are sparse; `scaled` is what the minimized loss is of it."""

    def model_fn(features, labels, mode):
        table = v1.get_variable("table", [6, 4])  # whose last row no batch has
        x = v1.reduce_mean(v1.nn.embedding_lookup(table, features["ids"]), 1)
        logits = tf1.layers.dense(x, 5, name="out")
        if mode == "infer":
            return EstimatorSpec(mode, {"logits": logits})
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        kept = [v for v in v1.trainable_variables() if not frozen or "out" in v.name]
        step = v1.train.get_global_step()
        pairs = optimizer.compute_gradients(loss * scaled, kept)
        train_op = optimizer.apply_gradients(norm(pairs) if norm else pairs, step)
        return EstimatorSpec(mode, None, loss, train_op)

    return model_fn


@pytest.mark.parametrize(
    "optimizer",
    [
        train.AdamOptimizer(0.02),
        train.AdagradOptimizer(0.1),
        train.GradientDescentOptimizer(0.1),
        train.MomentumOptimizer(0.1, 0.9),
        train.RMSPropOptimizer(0.01),
    ],
    ids=["adam", "adagrad", "descent", "momentum", "rms_prop"],
)
def test_embeddings_whose_gradients_are_sparse(optimizer, tmp_path):
    modes, training = led_out(bag(optimizer), words, tmp_path)
    assert training.notes == []
    np.testing.assert_allclose(losses(modes, training, 20), original(modes, 20), rtol=1e-4)


@pytest.mark.parametrize(
    ("clip", "said"),
    [
        (clip_by_global_norm, "global_clipnorm=0.5"),
        (clip_each(lambda g: tf.clip_by_value(g, -0.01, 0.01)), "clipvalue=0.01"),
    ],
    ids=["norm", "value"],
)
def test_embeddings_whose_gradients_are_clipped(clip, said, tmp_path):
    modes, training = led_out(bag(train.AdamOptimizer(0.02), norm=clip), words, tmp_path)
    assert said in training.optimizer.text
    assert "on JAX and PyTorch after" in training.notes[0]
    np.testing.assert_allclose(losses(modes, training, 20), original(modes, 20), rtol=1e-4)


def normalized(optimizer, rate):
    """Of embeddings, batch normalization and dropout."""

    def model_fn(features, labels, mode):
        trains = mode == "train"
        table = v1.get_variable("table", [6, 4])
        x = v1.reduce_mean(v1.nn.embedding_lookup(table, features["ids"]), 1)
        x = v1.reshape(tf1.layers.dense(x, 8), [-1, 2, 2, 2])  # of images it is fused
        x = tf1.layers.batch_normalization(x, training=trains)
        x = tf1.layers.dropout(v1.reshape(x, [-1, 8]), rate, training=trains)
        logits = tf1.layers.dense(x, 5)
        loss = None
        if labels is not None:
            loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        return spec_of(mode, logits, optimizer, loss)

    return model_fn


ON_JAX = """
import json, pathlib, pickle, sys
sys.path[:0] = sys.argv[1:]
import alone, keras, model
given = pickle.loads(pathlib.Path(sys.argv[1], "given.pickle").read_bytes())
made = model.make_model(compiled=True)
alone.fill(made, given)
[dropout] = [x for x in made._flatten_layers() if isinstance(x, keras.layers.Dropout)]
dropout.rate = 0.0
found = []
for _ in range(20):
    made.reset_metrics()
    logs = made.train_on_batch(given["features"][0], given["labels"], return_dict=True)
    found.append(float(logs["loss"]))
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    "optimizer",
    [lambda _: train.AdamOptimizer(0.1), momentum_by_steps],
    ids=["adam", "momentum"],
)
def test_the_file_trains_on_jax(optimizer, tmp_path):
    """As the original does, where dropout drops nothing."""
    modes, _ = led_out(normalized(optimizer, 0.5), words, tmp_path / "model")
    converted = convert.of_modes(modes, step_of(modes))
    (tmp_path / "model.py").write_text(converted.text)
    given = check._given(converted, samples.Samples([modes.features], [], [], modes.labels))
    (tmp_path / "given.pickle").write_bytes(pickle.dumps(given))
    folders = map(str, [tmp_path, pathlib.Path(check.__file__).parent])
    on_jax = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": ""}
    command = [sys.executable, "-P", "-c", ON_JAX, *folders]
    done = subprocess.run(command, capture_output=True, text=True, env=on_jax)
    assert done.returncode == 0, done.stderr
    kept = Estimator(normalized(optimizer, 0.0), str(tmp_path / "model"))
    expected = original(script.of_estimator(kept, words), 20)
    np.testing.assert_allclose(json.loads(done.stdout), expected, rtol=1e-4)


def stopped(features, labels, mode):
    x = tf1.layers.dense(v1.reshape(features["image"], [-1, 72]), 4, name="first")
    logits = tf1.layers.dense(v1.stop_gradient(x) * 2.0 + x, 5, name="out")
    loss = None
    if labels is not None:
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    return spec_of(mode, logits, lambda _: train.GradientDescentOptimizer(0.1), loss)


def test_gradients_that_are_stopped(tmp_path):
    modes, training = led_out(stopped, images, tmp_path)
    assert "StopGradient" in {node.kind for node in training.program.nodes()}
    np.testing.assert_allclose(losses(modes, training, 9), original(modes, 9), rtol=1e-4)


def test_a_gradient_that_the_file_does_not_stop_is_found(tmp_path):
    modes, _ = led_out(stopped, images, tmp_path / "model", steps=0)
    step = step_of(modes)
    data, converted = samples.of_modes(modes, step), convert.of_modes(modes, step)
    text = converted.text
    converted.text = text.replace("ops.stop_gradient(", "(")
    assert converted.text != text
    compared = check.check(converted, data, 1e-5, tmp_path)
    wrong = {(c.kind, c.name) for c in compared if not c.agrees}
    names = [("gradient", f"first.{name}") for name in ("bias", "kernel")]
    assert wrong == {(k, f"{n} in {w}") for k, n in names for w in ("training", "evaluation")}


def absolute(variable):
    return v1.reduce_sum(v1.abs(variable))


@pytest.mark.parametrize(
    ("kept", "penalty"),
    [("kernel", absolute), ("", v1.nn.l2_loss)],
    ids=["kernels", "all"],
)
def test_regularized_cells(kept, penalty, tmp_path):
    """Keras has their kernels in two parts, and adds to the bias of forget gates beforehand."""

    def model_fn(features, labels, mode):
        cell = tf1.nn.rnn_cell.BasicLSTMCell(4, forget_bias=1.0)
        x = v1.reshape(features["image"], [-1, 6, 12])
        outputs, _ = v1.nn.dynamic_rnn(cell, x, dtype=tf.float32)
        logits = tf1.layers.dense(outputs[:, -1], 5)
        loss = None
        if labels is not None:
            loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
            decayed = [v for v in v1.trainable_variables() if kept in v.name]
            loss += 0.01 * v1.add_n([penalty(variable) for variable in decayed])
        return spec_of(mode, logits, lambda _: train.GradientDescentOptimizer(0.1), loss)

    modes, training = led_out(model_fn, images, tmp_path / "model")
    assert training.notes == []
    step = step_of(modes)
    data, converted = samples.of_modes(modes, step), convert.of_modes(modes, step)
    assert ("ops.repeat([0.0, 1.0, 0.0, 0.0], 4)" in converted.text) == (not kept)
    compared = check.check(converted, data, 1e-5, tmp_path)
    assert [c for c in compared if not c.agrees] == []


@pytest.mark.parametrize("trained", [None, "out"])
def test_the_optimizer_minimizes_another_loss_or_by_some_variables(trained, tmp_path):
    def model_fn(features, labels, mode):
        x = tf1.layers.dense(v1.reshape(features["image"], [-1, 72]), 4, tf.nn.tanh, name="hidden")
        logits = tf1.layers.dense(x, 5, name="out")
        if mode == "infer":
            return EstimatorSpec(mode, logits)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        decayed = loss + 0.01 * v1.add_n([v1.nn.l2_loss(v) for v in v1.trainable_variables()])
        chosen = v1.trainable_variables(trained)
        step = train.AdamOptimizer(0.1).minimize(decayed, train.get_global_step(), chosen)
        return EstimatorSpec(mode, logits, loss, step)

    modes, training = led_out(model_fn, images, tmp_path / "model")
    assert any("not the loss of the spec" in note for note in training.notes)
    step = step_of(modes)
    data, converted = samples.of_modes(modes, step), convert.of_modes(modes, step)
    assert converted.text.count(".trainable = False") == (2 if trained else 0)
    compared = check.check(converted, data, 1e-5, tmp_path)
    assert [c for c in compared if not c.agrees] == []
    converted.text = converted.text.replace(".trainable = False", ".trainable = True")
    compared = check.check(converted, data, 1e-5, tmp_path)
    assert len([c for c in compared if not c.agrees]) == (4 if trained else 0)  # in both modes


def test_the_norm_of_zeros(tmp_path):
    """Its gradient is NaN in the original, too."""

    def penalized(features, labels, mode):
        logits = tf1.layers.dense(v1.reshape(features["image"], [-1, 72]), 5, name="out")
        loss = None
        if labels is not None:
            loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
            loss += v1.add_n([v1.norm(v) for v in v1.trainable_variables()])
        return spec_of(mode, logits, lambda _: train.AdagradOptimizer(0.1), loss)

    _, training = led_out(penalized, images, tmp_path, steps=0)
    assert training.notes == []
    assert training.optimizer.text.startswith("keras.optimizers.Adagrad(")


def test_variables_that_are_not_trained(tmp_path):
    """They are not trainable in Keras either."""
    modes, training = led_out(bag(train.AdamOptimizer(0.02), frozen=True), words, tmp_path)
    assert sorted(k for k, w in modes.weights.items() if w.trainable) == ["out/bias", "out/kernel"]
    np.testing.assert_allclose(losses(modes, training, 9), original(modes, 9), rtol=1e-4)


def averaged(features, labels, mode):
    spec = mlp(lambda _: train.AdagradOptimizer(0.1))(features, labels, mode)
    if mode != "train":
        return spec
    with v1.control_dependencies([spec.train_op]):
        return spec._replace(train_op=train.ExponentialMovingAverage(0.9).apply())


def test_averages_of_weights(tmp_path):
    modes, training = led_out(averaged, images, tmp_path)
    assert training.optimizer.text.endswith("epsilon=0.0, use_ema=True, ema_momentum=0.9)")
    [note] = training.notes
    assert note.startswith("Averages of the weights begin in Keras with those after the first step")
    model = Described(training).ready()
    for _ in range(9):
        model.train_on_batch(modes.features, modes.labels)
    original(modes, 9)
    mode = modes.modes["train"]
    variables = {v.op.name: v for v in mode.captured.graph.get_collection("variables")}
    with mode.captured.in_graph():
        expected = variables["out/bias/ExponentialMovingAverage"].read_value()
    averages = zip(model.optimizer._model_variables_moving_average, model.bound, strict=True)
    [found] = [each for each, (_, bound) in averages if bound.weights[0].name == "out/bias"]
    np.testing.assert_allclose(found, mode.run(expected), rtol=1e-4)


def test_another_loss_than_that_of_the_spec(tmp_path):
    """The model trains on what the optimizer minimizes."""
    modes, training = led_out(bag(train.AdagradOptimizer(0.1), scaled=3.0), words, tmp_path)
    [note] = training.notes
    assert note.startswith("The optimizer minimizes mul, not the loss of the spec, which is report")
    expected = [3 * loss for loss in original(modes, 9)]
    np.testing.assert_allclose(losses(modes, training, 9), expected, rtol=1e-4)


def test_a_loss_with_weights(tmp_path):
    """Its mean is over the weights that are not zero, which Keras counts."""

    def model_fn(features, labels, mode):
        logits = tf1.layers.dense(v1.reshape(features["image"], [-1, 72]), 5, name="out")
        loss = None
        if labels is not None:
            weights = tf.cast(labels > 1, tf.float32)
            loss = v1.losses.sparse_softmax_cross_entropy(labels, logits, weights)
        return spec_of(mode, logits, lambda _: v1.train.GradientDescentOptimizer(0.1), loss)

    modes, training = led_out(model_fn, images, tmp_path)
    assert "count_nonzero" in str([node.attrs for node in training.loss.nodes()])
    np.testing.assert_allclose(losses(modes, training, 3), original(modes, 3), rtol=1e-4)


def test_a_loss_that_depends_on_the_step(tmp_path):
    """It is named: the file counts steps in its optimizer alone."""

    def model_fn(features, labels, mode):
        logits = tf1.layers.dense(v1.reshape(features["image"], [-1, 72]), 5)
        loss = None
        if labels is not None:
            loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
            loss *= v1.cast(v1.train.get_global_step(), tf.float32)
        return spec_of(mode, logits, lambda _: train.GradientDescentOptimizer(0.1), loss)

    _, training = led_out(model_fn, images, tmp_path)
    [note] = training.notes
    assert note.startswith("A training step changes global_step (AssignAddVariableOp, ")


class Doubling(train.AdamOptimizer):
    def apply_gradients(self, pairs, *args, **kwargs):
        pairs = [(2.0 * v1.convert_to_tensor(g), variable) for g, variable in pairs]
        return super().apply_gradients(pairs, *args, **kwargs)


class ByHand(train.Optimizer):
    def apply_gradients(self, pairs, global_step=None, name=None):
        steps = [v1.assign_sub(variable, 0.1 * g) for g, variable in pairs]
        return v1.group(*steps, v1.assign_add(global_step, 1))


def of_two(step):
    return TwoOptimizers()


class TwoOptimizers(train.Optimizer):
    def __init__(self):
        super().__init__(False, "two")

    def apply_gradients(self, pairs, global_step=None, name=None):
        pairs = list(pairs)
        first = train.AdamOptimizer(0.1).apply_gradients(pairs[:2])
        second = train.AdagradOptimizer(0.1).apply_gradients(pairs[2:], global_step)
        return v1.group(first, second)


def adversarial(features, labels, mode):
    x = v1.reshape(features["image"], [-1, 72])
    made = tf1.layers.dense(x, 5, name="maker")
    judged = tf1.layers.dense(made, 5, name="judge")
    if mode == "infer":
        return EstimatorSpec(mode, judged)
    losses = [v1.reduce_mean(judged, name="first"), v1.reduce_mean(tf.square(judged), name="last")]
    step = v1.train.get_global_step()
    steps = [
        train.AdamOptimizer(0.1).minimize(loss, step, v1.trainable_variables(name))
        for loss, name in zip(losses, ("judge", "maker"), strict=True)
    ]
    return EstimatorSpec(mode, None, v1.add_n(losses), v1.group(*steps))


def half(pairs):
    return [(tf.clip_by_norm(g, 1.0) if i else g, v) for i, (g, v) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("model_fn", "reason"),
    [
        (mlp(lambda _: Doubling(0.01)), "it applies other gradients than those of the loss."),
        (mlp(lambda _: ByHand(False, "hand")), "updates hidden/kernel by operations in Python. Co"),
        (mlp(lambda _: OfKeras2(1e-3)), "it adds epsilon to the root, and Keras' Adagrad in it."),
        (
            mlp(lambda _: train.AdamOptimizer(v1.assign(rate := rate_variable(), rate * 0.9))),
            "its rate depends on rate.",
        ),
        (mlp(of_two), "variables have several optimizers or rates (Adagrad, Adam). Compile the"),
        (
            mlp(lambda _: train.AdagradOptimizer(0.1), half),
            "it clips the gradients of some variables only, or differently.",
        ),
        (adversarial, "it minimizes several losses, judge by first, maker by last. Write the"),
    ],
)
def test_optimizers_that_keras_lacks(model_fn, reason, tmp_path):
    """They are named; the model still gives the original's losses."""
    modes, training = led_out(model_fn, images, tmp_path)
    assert training.optimizer is None
    [note] = training.notes
    assert note.startswith("The file has no optimizer: ")
    assert reason in note
    model = Described(training)
    y_pred = model(modes.features, training=True)
    loss = model.compute_loss(modes.features, modes.labels, y_pred)
    np.testing.assert_allclose(loss, original(modes, 1), rtol=1e-5)
