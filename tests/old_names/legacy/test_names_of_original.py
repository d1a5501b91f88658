"""Private names of the original's modules, which scripts import, subclass and replace."""

import ast
import pathlib
import unittest.mock

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator
from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.old_names.canned import wheel
from tpu_estimator_compat.old_names.legacy import imports, overlay
from tpu_estimator_compat.old_names.legacy.dialect import Dialect

ORIGINAL = "tensorflow_estimator.python.estimator"
[FOLDER] = map(pathlib.Path, wheel.__path__)
ROOTS = (ORIGINAL, "tensorflow.python.estimator")
REFUSED = ("canned.saved_model_estimator", "tpu._tpu_estimator_embedding", "tpu.error_handling")
REFUSED += ("tpu.iteration_count_estimator", "tpu.tpu_context", "tpu.tpu_estimator")


def module(path, root=ORIGINAL):
    above, _, last = f"{root}.{path}".rpartition(".")
    return overlay.member(imports.imported(above, (last,), Dialect.V1), above, last)


def defined():
    """The functions and classes of the original, by module."""
    for file in sorted(FOLDER.rglob("*.py")):
        body = ast.parse(file.read_text()).body
        names = [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        path = ".".join(file.relative_to(FOLDER).with_suffix("").parts)
        if names and not path.startswith("api."):
            yield path, names


def model_fn(features, labels, mode):
    predictions = features * tf.get_variable("w", [], tf.float32)
    loss = tf.losses.mean_squared_error(labels, predictions)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return estimator.EstimatorSpec(mode, predictions, loss, train_op)


def input_fn():
    return tf.data.Dataset.from_tensors(([[1.0]], [[2.0]])).repeat(4)


def specs(**given):
    train_spec = estimator.TrainSpec(input_fn, max_steps=2)
    return train_spec, estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0, **given)


@pytest.mark.parametrize("root", ROOTS)
def test_every_function_and_class_is_there_or_refused(root):
    count, refused = 0, set()
    for path, names in defined():
        space = module(path, root)
        for name in names:
            count += 1
            if isinstance(getattr(space, name), overlay.Refused):
                refused.add(path)
    assert count > 500
    assert refused <= set(REFUSED)


def test_names_that_nobody_had_are_not_there():
    for path in ("training", "tpu.tpu_estimator", "canned.head", "estimator"):
        assert not hasattr(module(path), "_nothing")
    with pytest.raises(ImportError, match="_nothing is not in TensorFlow"):
        imports.imported(f"{ORIGINAL}.exporter", ("_nothing",), Dialect.V1)


def test_a_train_and_evaluate_of_its_own(tmp_path):
    training, seen = module("training"), []

    class Done(training._ContinuousEvalListener):
        def after_eval(self, eval_result):
            seen.append(eval_result.status)
            return False

    trained = estimator.Estimator(model_fn, str(tmp_path))
    train_spec, eval_spec = specs(throttle_secs=0)
    training._assert_eval_spec(eval_spec)
    listener = {"continuous_eval_listener": Done()}
    executor = training._TrainingExecutor(trained, train_spec, eval_spec, **listener)
    metrics, _ = executor.run()
    executor.run_evaluator()
    assert metrics["global_step"] == 2
    assert seen == [training._EvalStatus.EVALUATED] * 2


def test_what_a_script_replaces_is_what_runs(tmp_path):
    training, same = (module("training", root) for root in ROOTS)
    original, seen = training._TrainingExecutor, []

    class Mine(original):
        def run_local(self):
            seen.append("local")

    def go():
        run = estimator.Estimator(model_fn, str(tmp_path))
        estimator.train_and_evaluate(run, *specs())
        return seen.copy()

    training._TrainingExecutor = Mine
    try:
        assert go() == ["local"]
    finally:
        training._TrainingExecutor = original
    with unittest.mock.patch.object(same, "_assert_eval_spec", seen.append):
        told = go()
    assert len(told) > 1
    assert training._TrainingExecutor is same._TrainingExecutor is original
    assert go() == told


def test_what_no_estimator_looks_for_is_told(caplog, monkeypatch):
    monkeypatch.setattr(module("estimator"), "_check_hooks_type", list)
    assert f"{ORIGINAL}.estimator._check_hooks_type is set" in caplog.text


def test_a_subclass_of_the_configuration_passes_its_defaults_on():
    run_config = module("run_config")

    class Mine(run_config.RunConfig):
        def __init__(self, save_checkpoints_secs=run_config._USE_DEFAULT):
            super().__init__(save_checkpoints_secs=save_checkpoints_secs)

    assert Mine().save_checkpoints_secs == RunConfig().save_checkpoints_secs == 600
    assert run_config._get_eval_session_master("evaluator", {"eval_session_master": "x"}) == "x"
