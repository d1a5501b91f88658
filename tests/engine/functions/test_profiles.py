"""Profiles of steps: by hooks, by scripts, and where the environment asks for them."""

import json
import pathlib

import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import RUNTIMES, on
from support.legacy_models import make_estimator, train_input_fn
from tensorflow.profiler import experimental

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.functions import profiles
from tpu_estimator_compat.engine.session import profiled_steps
from tpu_estimator_compat.environment import PROFILE_VARIABLE

UPDATE = "GradientDescent/update_weights/ResourceApplyGradientDescent"
OF_MODEL = {"Mean", UPDATE}


@pytest.fixture(params=RUNTIMES)
def estimator(request, tmp_path):
    """With loops of five steps; of the runtimes that the installation has."""
    if request.param == "jax":
        pytest.importorskip("jax")

    def model_fn(features, labels, mode, params):
        weights = tf.get_variable("weights", [4, 32])  # XLA makes one call of loops below 1 KiB
        loss = tf.reduce_mean(
            (tf.matmul(features, weights) - tf.cast(labels[:, None], tf.float32)) ** 2
        )
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.01))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return on(request.param, 1, tmp_path / "model", model_fn)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the environment asks for a profile."""
    monkeypatch.setenv(PROFILE_VARIABLE, str(tmp_path / "profile"))
    monkeypatch.setattr(profiled_steps.ProfiledSteps, "_is_made", False)
    return tmp_path / "profile"


def times(path: pathlib.Path) -> dict[str, int]:
    """How often the timeline of a file shows each operation."""
    events = json.loads(path.read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["ph"] == "X"]
    return {name: names.count(name) for name in names}


def test_profiler_hook_shows_every_operation_of_a_loop(tmp_path, estimator):
    with tf.Graph().as_default():  # TF1's event writers are for graphs
        hook = tf.train.ProfilerHook(save_steps=10, output_dir=str(tmp_path / "hook"))
    estimator.train(train_input_fn, hooks=[hook], max_steps=25)
    paths = sorted((tmp_path / "hook").glob("timeline-*.json"))
    assert [path.name for path in paths] == ["timeline-20.json"]
    for path in paths:
        shown = times(path)
        # XLA makes more than one instruction of an operation, or one.
        assert {shown.get(name, 1) % 5 for name in OF_MODEL} == {0}, shown
    assert not profiles.is_recording()


def test_tensorflows_profiler_shows_the_work_of_both_runtimes(tmp_path, estimator):
    options = experimental.ProfilerOptions(host_tracer_level=3)
    with experimental.Profile(str(tmp_path / "own"), options):
        estimator.train(train_input_fn, max_steps=10)
    [devices] = profiles.step_stats(str(tmp_path / "own")).dev_stats
    assert {node.node_name for node in devices.node_stats} >= OF_MODEL
    with experimental.Profile(str(tmp_path / "again"), options):
        estimator.train(train_input_fn, max_steps=20)
    shown = [
        node.node_name
        for node in profiles.step_stats(str(tmp_path / "again")).dev_stats[0].node_stats
    ]
    assert shown.count(UPDATE) == 10


def test_the_environment_asks_for_a_profile_of_the_second_loop(folder, estimator, caplog):
    with caplog.at_level("INFO"):
        estimator.train(train_input_fn, max_steps=30)
        estimator.train(train_input_fn, max_steps=60)
    [path] = folder.glob("timeline-*.json")
    assert path.name == "timeline-5.json"
    assert times(path)[UPDATE] == 10
    assert list(folder.glob("plugins/profile/*/*.xplane.pb"))
    assert caplog.text.count("A profile of steps from global step 5 on is in") == 1


@pytest.mark.parametrize("estimator", ["tensorflow"], indirect=True)
class TestOfOneRuntime:
    """What does not depend on the runtime."""

    def test_a_single_loop_is_not_shown_and_a_warning_says_so(self, folder, estimator, caplog):
        estimator.train(train_input_fn, max_steps=5)
        assert not list(folder.glob("timeline-*.json"))
        assert "all steps were made in one run, which compiles" in caplog.text
        assert not profiles.is_recording()

    def test_a_profile_ends_within_a_long_loop(self, folder, estimator, monkeypatch):
        monkeypatch.setattr(profiled_steps, "_SECONDS", 0.0)
        estimator.train(train_input_fn, max_steps=10)
        assert (folder / "timeline-5.json").exists()

    def test_an_error_in_a_step_leaves_no_profiler_behind(self, folder, estimator):
        class Fails(tf.train.SessionRunHook):
            def after_run(self, run_context, run_values):
                raise KeyError("a hook's own")

        with pytest.raises(KeyError, match="a hook's own"):
            estimator.train(train_input_fn, hooks=[Fails()], max_steps=10)
        assert not profiles.is_recording()

    def test_a_script_that_records_by_itself_keeps_its_record(
        self, folder, estimator, tmp_path, caplog
    ):
        with experimental.Profile(str(tmp_path / "own")):
            estimator.train(train_input_fn, max_steps=10)
        assert list((tmp_path / "own").glob("plugins/profile/*/*.xplane.pb"))
        assert not folder.exists()
        assert "the script records one by itself" in caplog.text

    def test_a_hook_within_a_profile_of_the_script_warns(self, estimator, tmp_path, caplog):
        with tf.Graph().as_default():
            hook = tf.train.ProfilerHook(save_steps=10, output_dir=str(tmp_path / "hook"))
        with experimental.Profile(str(tmp_path / "own")):
            estimator.train(train_input_fn, hooks=[hook], max_steps=20)
        assert "a profile is being recorded" in caplog.text


def test_a_prediction_is_shown_too(folder, tmp_path, monkeypatch):
    estimator = make_estimator(tmp_path / "predicts", use_tpu=False)
    with monkeypatch.context() as without:
        without.delenv(PROFILE_VARIABLE)
        estimator.train(train_input_fn, steps=1)
    list(estimator.predict(lambda params: train_input_fn(params).take(2)))
    [path] = folder.glob("timeline-*.json")
    assert "MatMul" in str(times(path))
    assert "Gradient" not in str(times(path))
