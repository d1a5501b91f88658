import logging

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import finite_input_fn, make_estimator, make_model_fn, train_input_fn

import tpu_estimator_compat as tpu


class Called:
    """A model_fn and an input_fn that log their calls, as the spec's functions do."""

    def host_fn(self, values):
        logging.getLogger("tensorflow").info("host_call")
        return tf.identity(values)

    def metric_fn(self, values):
        logging.getLogger("tensorflow").info("metric_fn")
        return {"mean": tf.metrics.mean(values)}

    def scaffold_fn(self):
        logging.getLogger("tensorflow").info("scaffold_fn")
        return tf.train.Scaffold()

    def input_fn(self, params):
        logging.getLogger("tensorflow").info("input_fn")
        return train_input_fn(params)

    def model_fn(self, features, labels, mode, params):
        logging.getLogger("tensorflow").info("model_fn")
        spec = make_model_fn()(features, labels, mode, params)
        return spec._replace(
            eval_metrics=(self.metric_fn, [features]) if mode == tpu.ModeKeys.EVAL else None,
            host_call=(self.host_fn, [features]),
            scaffold_fn=self.scaffold_fn,
        )


ON_CPU = ["input_fn", "Calling model_fn.", "Running {} on CPU/GPU", "model_fn"]
ON_TPU = ["Calling model_fn.", "input_fn", "model_fn"]
DONE = "Done calling model_fn."


@pytest.mark.parametrize(
    ("use_tpu", "expected"),
    [
        (
            False,
            {
                "train": [*ON_CPU, "host_call", "scaffold_fn", DONE],
                "eval": [*ON_CPU, "metric_fn", "host_call", "scaffold_fn", DONE],
                "infer": [*ON_CPU, "host_call", "scaffold_fn", DONE],
            },
        ),
        (
            True,
            {
                "train": [*ON_TPU, "scaffold_fn", "host_call", DONE],
                "eval": [*ON_TPU, "scaffold_fn", "metric_fn", "host_call", DONE],
                "infer": [*ON_TPU, "scaffold_fn", "host_call", DONE],
            },
        ),
    ],
)
def test_functions_are_called_in_the_originals_order(tmp_path, caplog, use_tpu, expected):
    caplog.set_level(logging.INFO, "tensorflow")
    called = Called()
    estimator = make_estimator(tmp_path, called.model_fn, use_tpu=use_tpu)
    calls = {
        "train": lambda: estimator.train(called.input_fn, steps=1),
        "eval": lambda: estimator.evaluate(called.input_fn, steps=1),
        "infer": lambda: next(estimator.predict(called.input_fn)),
    }
    for mode, call in calls.items():
        caplog.clear()
        call()
        lines = [line.format(mode) for line in expected[mode]]
        assert [m for m in caplog.messages if m in lines] == lines


def test_a_prediction_by_keras_makes_no_host_call(tmp_path, caplog):
    caplog.set_level(logging.INFO, "tensorflow")
    called = Called()
    estimator = make_estimator(tmp_path, called.model_fn, use_tpu=True)
    estimator.train(called.input_fn, steps=1)
    model = estimator.keras_model()
    caplog.clear()
    model.predict(finite_input_fn(16)({"batch_size": 16}), verbose=0)
    assert "scaffold_fn" in caplog.messages
    assert "host_call" not in caplog.messages
