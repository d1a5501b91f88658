"""Metrics of an evaluation are Keras' own where these give the same numbers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tools.to_keras.training.described import Described, led_out

import tpu_estimator_compat.v1 as tf1
from tpu_estimator_compat.spec import EstimatorSpec

v1 = tf.compat.v1
m = v1.metrics
random = np.random.default_rng(0)
X, W = random.normal(size=(16, 4)).astype("float32"), random.random(16).astype("float32")
K, B = random.integers(0, 4, 16), random.integers(0, 2, 16).astype("float32")


def updated(f, **options):
    metric = keras.metrics.BinaryAccuracy(**options)
    metric.update_state(f.b, f.p, f.w)
    return metric


ROWS = {
    "Accuracy": {
        "accuracy": lambda f: m.accuracy(f.k, f.c),
        "weighted": lambda f: m.accuracy(f.k, f.c, f.w),
        "probabilities": lambda f: m.accuracy(v1.cast(f.b, tf.int32), f.p),  # cast to 0
    },
    "AUC": {
        "auc": lambda f: m.auc(f.b, f.p),
        "weighted": lambda f: m.auc(f.b, f.p, f.w, num_thresholds=50),
        "precisions": lambda f: m.auc(
            f.b, f.p, curve="PR", summation_method="careful_interpolation"
        ),
    },
    "BinaryAccuracy": {"of_keras": lambda f: updated(f, threshold=0.3)},
    "Mean": {
        "mean": lambda f: m.mean(f.p),
        "weighted": lambda f: m.mean(f.t, f.w),
        "columns": lambda f: m.mean(f.x, f.w[:, None]),
        "ones": lambda f: m.mean(f.p, tf.ones_like(f.p) * 1.0),
        "below": lambda f: m.percentage_below(f.t, 0.1),
        "absolute": lambda f: m.mean_absolute_error(f.b, f.p),  # batches differ in size
        "square": lambda f: m.mean_squared_error(f.b, f.p, f.w),
    },
    "MeanAbsoluteError": {"columns": lambda f: m.mean_absolute_error(f.x, f.x * f.p[:, None])},
    "MeanIoU": {"iou": lambda f: m.mean_iou(f.k, f.c, 4)},
    "Precision": {
        "precision": lambda f: m.precision(f.b, f.p > 0.5, f.w),
        "numbers": lambda f: m.precision(f.b, f.p - 0.5),  # true is what is not 0
    },
    "Recall": {"recall": lambda f: m.recall(f.b, f.p > 0.5)},
    "RootMeanSquaredError": {"weighted": lambda f: m.root_mean_squared_error(f.b, f.p, f.w)},
    "TruePositives": {"positives": lambda f: m.true_positives(f.b, f.p > 0.5)},
}
NONE = {
    "below": lambda f: m.sensitivity_at_specificity(f.b, f.p, 0.5),
    "changed": lambda f: (1.0 - m.mean(f.p)[0], m.mean(f.p)[1]),
    "trapezoids": lambda f: m.auc(f.b, f.p, curve="PR"),
}


class Given:
    def __init__(self, features, labels, logits):
        self.x, self.w, self.k, self.b = features["x"], features["w"], labels["k"], labels["b"]
        self.c, self.t = v1.argmax(logits, 1), logits[:, 0]
        self.p = v1.sigmoid(self.t)


def model(rows):
    def model_fn(features, labels, mode):
        logits = tf1.layers.dense(features["x"], 4)
        if mode == "infer":
            return EstimatorSpec(mode, {"logits": logits})
        loss = v1.losses.sparse_softmax_cross_entropy(labels["k"], logits)
        given = Given(features, labels, logits)
        metrics = {name: row(given) for name, row in rows.items()} if mode == "eval" else None
        step = v1.train.get_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return EstimatorSpec(mode, None, loss, train_op, metrics)

    return model_fn


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X, "w": W}, {"k": K, "b": B})).batch(16)


@pytest.mark.parametrize("labels", [B, np.zeros_like(B)], ids=["both classes", "one class"])
def test_metrics(labels, tmp_path, monkeypatch):
    """Of two batches of different sizes."""
    monkeypatch.setitem(globals(), "B", labels)
    rows = {f"{cls}/{k}": row for cls, each in ROWS.items() for k, row in each.items()}
    modes, training = led_out(model(rows | NONE), input_fn, tmp_path, steps=0)
    [note] = training.notes
    assert note.startswith("The file leaves out metrics that are none of Keras': below, changed, t")
    made = {metric.name: metric.made.text for metric in training.metrics}
    assert made.keys() == rows.keys()
    for name, text in made.items():
        assert text.removeprefix("keras.metrics.").startswith(f"{name.split('/')[0]}(")
    evaluation, keras_model = modes.modes["eval"], Described(training)
    pairs = {k: v for k, v in evaluation.captured.functions.metrics.items() if k in rows}
    for size in (16, 5):
        fed = {name: array[:size] for name, array in evaluation.batch.items()}
        evaluation.session.run([update for _, update in pairs.values()], fed)
        found = keras_model.evaluated(
            {"x": X[:size], "w": W[:size]}, {"k": K[:size], "b": B[:size]}
        )
    expected = evaluation.session.run({name: value for name, (value, _) in pairs.items()})
    assert found == pytest.approx(expected, rel=1e-5)
