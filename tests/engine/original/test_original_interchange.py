"""What one runtime writes, the other continues, evaluates, predicts from and exports.

The scenarios are those of one runtime, with the same results, log lines, files, events and
checkpoints, whichever runtime makes which call.
"""

import itertools
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import assert_near, variables
from support.legacy_models import examples, finite_input_fn, logits_of, make_estimator, metric_fn
from support.sides import comparing, observing

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as namespace
from tpu_estimator_compat import layers, v1

RUNTIMES = ("tensorflow", "session")


def whole(params):
    """Batches of all examples: a call starts with the batch that another would go on with."""
    return finite_input_fn(64)({"batch_size": 64}).repeat()


def of_variables(features, labels, mode, params):
    return spec_of(logits_of(features), labels, mode)


def of_layers(features, labels, mode, params):
    hidden = layers.batch_normalization(layers.dense(features, 8), training=mode == "train")
    return spec_of(layers.dense(tf.nn.relu(hidden), 3), labels, mode)


def spec_of(logits, labels, mode):
    if mode == "infer":
        predictions = {"class": tf.argmax(logits, -1), "logits": logits}
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.summary.scalar("of_model_fn", loss)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    metrics = (metric_fn, [labels, logits])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=metrics)


def made(runtime, model_dir, model_fn=of_layers, **settings):
    settings = {"save_summary_steps": 2, "log_step_count_steps": 2, **settings}
    return make_estimator(model_dir, model_fn, runtime=runtime, **settings)


COLUMNS = [
    tf.feature_column.numeric_column("x", shape=[4]),
    tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b", "c"]), 2
    ),
]


def canned(runtime, model_dir):
    config = namespace.RunConfig(tf_random_seed=1, save_summary_steps=2, runtime=runtime)
    return v1.estimator.DNNClassifier([8], COLUMNS, str(model_dir), n_classes=3, config=config)


def of_columns():
    x, y = examples()
    words = np.array(["a", "b", "c", "d"])[y + 2 * (x[:, 0] > 0)]
    return tf.data.Dataset.from_tensors(({"x": x, "word": words}, y)).repeat()


KINDS = {
    "variables": (lambda *where: made(*where, of_variables), whole),
    "layers": (made, whole),
    "canned": (canned, of_columns),
}


@pytest.fixture(
    params=["variables", *(pytest.param(k, marks=pytest.mark.slow) for k in ("layers", "canned"))]
)
def kind(request):
    return KINDS[request.param]


def by_each_in_turn(make, input_fn, first, second):
    def scenario(model_dir, record):
        make(first, model_dir).train(input_fn, steps=5)
        make(second, model_dir).train(input_fn, max_steps=10)
        for runtime in (first, second):
            estimator = make(runtime, model_dir)
            record("evaluated", estimator.evaluate(input_fn, steps=2))
            record("predicted", next(estimator.predict(input_fn)))

    return scenario


def test_either_goes_on_where_the_other_was(kind, tmp_path):
    found = {}
    for first, second in itertools.product(RUNTIMES, RUNTIMES):
        home = tmp_path / f"{first}_{second}"
        home.mkdir()
        scenario = by_each_in_turn(*kind, first, second)
        found[first, second] = observing.observe(scenario, str(home), 10**6)
    expected = found.pop((RUNTIMES[0], RUNTIMES[0]))
    assert expected["error"] is None
    assert len(expected["events"]) == 2  # of training and of evaluation
    for other in found.values():
        comparing.assert_none(comparing.differences(expected, other))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_ten_steps_are_five_and_five_of_the_other(kind, tmp_path, runtime):
    make, input_fn = kind
    [other] = set(RUNTIMES) - {runtime}
    straight = make(runtime, tmp_path / "straight").train(input_fn, steps=10)
    make(other, tmp_path / "turns").train(input_fn, steps=5)
    turns = make(runtime, tmp_path / "turns").train(input_fn, steps=5)
    assert_near(variables(turns), variables(straight))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_warm_start_from_the_other(tmp_path, runtime):
    [other] = set(RUNTIMES) - {runtime}
    source = made(other, tmp_path / "source", of_variables).train(whole, steps=5)
    warm = made(runtime, tmp_path / "warm", of_variables, warm_start_from=source.model_dir)
    assert warm.evaluate(whole, steps=1)["loss"] == source.evaluate(whole, steps=1)["loss"]
    warm.train(whole, steps=1)
    assert warm.get_variable_value("global_step") == 1


def receiver_fn():
    features = tf.placeholder(tf.float32, [None, 4], name="features")
    return namespace.export.TensorServingInputReceiver(features, features)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_exporters_and_early_stopping_by_turns(tmp_path, runtime):
    """Each run trains until the loss is low enough, which the other's events may say."""
    [other] = set(RUNTIMES) - {runtime}

    def run(which, limit, most):
        estimator = made(which, tmp_path, save_checkpoints_steps=5)
        hook = namespace.experimental.stop_if_lower_hook(
            estimator, "loss", limit, min_steps=0, run_every_secs=None, run_every_steps=1
        )
        exporters = [
            namespace.LatestExporter("latest", receiver_fn),
            namespace.BestExporter("best", receiver_fn),
        ]
        namespace.train_and_evaluate(
            estimator,
            namespace.TrainSpec(whole, max_steps=most, hooks=[hook]),
            namespace.EvalSpec(whole, steps=1, exporters=exporters, throttle_secs=0),
        )
        return int(estimator.get_variable_value("global_step"))

    assert run(other, 0.0, 10) == 10
    assert run(runtime, 100.0, 30) == 11  # the events of the other say so after one step
    assert len(os.listdir(tmp_path / "export" / "latest")) > 0
    assert len(os.listdir(tmp_path / "export" / "best")) > 0


@pytest.mark.parametrize("trained_by", RUNTIMES)
def test_exports_are_the_same(tmp_path, trained_by):
    made(trained_by, tmp_path).train(whole, steps=5)
    x, _ = examples(4)
    answers = []
    for runtime in RUNTIMES:
        estimator = made(runtime, tmp_path)
        path = estimator.export_saved_model(tmp_path / f"by_{runtime}", receiver_fn)
        served = tf.saved_model.load_v2(path.decode(), tags=["serve"]).signatures["serving_default"]
        answers.append(served(tf.constant(x))["logits"].numpy())
    np.testing.assert_array_equal(*answers)
    predicted = [
        p["logits"] for p in estimator.predict(lambda params: tf.data.Dataset.from_tensors(x))
    ]
    np.testing.assert_allclose(predicted, answers[0], 1e-5, 1e-6)
