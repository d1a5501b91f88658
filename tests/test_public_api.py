"""The public names, pinned: this fails when one appears or goes; and importing changes nothing."""

import inspect

import pytest
import tensorflow as tf

import tpu_estimator_compat
from tpu_estimator_compat import estimator, tpu

TPU_NAMES = {
    "BatchConfig",
    "CrossShardOptimizer",
    "ExportSavedModelApiVersion",
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
    "TPUStrategy",
    "export_estimator_savedmodel",
    "inference_on_tpu",
    "model_fn_inference_on_tpu",
}
HOOK_NAMES = {
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "FeedFnHook",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "LoggingTensorHook",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "ProfilerHook",
    "SecondOrStepTimer",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
}
ESTIMATOR_NAMES = HOOK_NAMES | {
    "BestExporter",
    "Estimator",
    "EstimatorSpec",
    "EvalSpec",
    "Exporter",
    "FinalExporter",
    "LatestExporter",
    "ModeKeys",
    "RunConfig",
    "TrainSpec",
    "VocabInfo",
    "WarmStartSettings",
    "add_metrics",
    "experimental",
    "export",
    "inputs",
    "tpu",
    "train_and_evaluate",
}
EXPERIMENTAL_NAMES = {
    "InMemoryEvaluatorHook",
    "build_raw_supervised_input_receiver_fn",
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
}
EXPORT_NAMES = {
    "ClassificationOutput",
    "EvalOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "ServingInputReceiver",
    "SupervisedInputReceiver",
    "TensorServingInputReceiver",
    "TrainOutput",
    "UnsupervisedInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
    "build_raw_supervised_input_receiver_fn",
    "build_supervised_input_receiver_fn_from_input_fn",
}


def test_names():
    assert set(tpu.__all__) == TPU_NAMES
    assert set(estimator.__all__) == ESTIMATOR_NAMES
    assert set(estimator.tpu.__all__) == TPU_NAMES
    assert set(estimator.export.__all__) == EXPORT_NAMES
    assert set(estimator.experimental.__all__) == EXPERIMENTAL_NAMES
    package = TPU_NAMES | {"ModeKeys", "WarmStartSettings", "estimator", "tpu"}
    package |= {"install", "uninstall"}
    assert set(tpu_estimator_compat.__all__) == package
    assert set(estimator.inputs.__all__) == {"numpy_input_fn", "pandas_input_fn"}
    modules = (tpu_estimator_compat, tpu, estimator, estimator.tpu, estimator.export)
    for module in (*modules, estimator.experimental):
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_the_same_object_under_every_name():
    for name in TPU_NAMES:
        assert getattr(tpu, name) is getattr(estimator.tpu, name)
        assert getattr(tpu, name) is getattr(tpu_estimator_compat, name)
    for name in HOOK_NAMES:
        assert getattr(estimator, name) is getattr(tf.compat.v1.train, name)
    assert issubclass(tpu.RunConfig, estimator.RunConfig)
    assert tpu.RunConfig is not estimator.RunConfig
    assert issubclass(tpu.TPUEstimator, estimator.Estimator)


SIGNATURES = {
    tpu.TPUEstimator: [
        "model_fn model_dir config params use_tpu train_batch_size eval_batch_size",
        "predict_batch_size batch_axis eval_on_tpu export_to_tpu export_to_cpu warm_start_from",
        "embedding_config_spec export_saved_model_api_version",
    ],
    estimator.Estimator: ["model_fn model_dir config params warm_start_from"],
    tpu.TPUEstimator.train: ["self input_fn hooks steps max_steps saving_listeners"],
    tpu.TPUEstimator.evaluate: ["self input_fn steps hooks checkpoint_path name"],
    estimator.train_and_evaluate: ["estimator train_spec eval_spec"],
    estimator.TrainSpec: ["input_fn max_steps hooks saving_listeners"],
    estimator.EvalSpec: ["input_fn steps name hooks exporters start_delay_secs throttle_secs"],
    estimator.BestExporter: [
        "name serving_input_receiver_fn event_file_pattern compare_fn assets_extra as_text",
        "exports_to_keep",
    ],
    estimator.FinalExporter: ["name serving_input_receiver_fn assets_extra as_text"],
    estimator.LatestExporter: [
        "name serving_input_receiver_fn assets_extra as_text exports_to_keep"
    ],
    estimator.experimental.InMemoryEvaluatorHook: [
        "estimator input_fn steps hooks name every_n_iter"
    ],
    estimator.experimental.make_early_stopping_hook: [
        "estimator should_stop_fn run_every_secs run_every_steps"
    ],
    estimator.experimental.make_stop_at_checkpoint_step_hook: [
        "estimator last_step wait_after_file_check_secs"
    ],
    estimator.experimental.stop_if_higher_hook: [
        "estimator metric_name threshold eval_dir min_steps run_every_secs run_every_steps"
    ],
    estimator.experimental.stop_if_no_decrease_hook: [
        "estimator metric_name max_steps_without_decrease eval_dir min_steps run_every_secs",
        "run_every_steps",
    ],
    tpu.TPUEstimator.predict: [
        "self input_fn predict_keys hooks checkpoint_path yield_single_examples"
    ],
    tpu.TPUEstimator.export_saved_model: [
        "self export_dir_base serving_input_receiver_fn assets_extra as_text checkpoint_path",
        "experimental_mode",
    ],
    tpu.TPUEstimator.export_savedmodel: [
        "self export_dir_base serving_input_receiver_fn assets_extra as_text checkpoint_path",
        "strip_default_attrs",
    ],
    tpu.TPUEstimator.experimental_export_all_saved_models: [
        "self export_dir_base input_receiver_fn_map assets_extra as_text checkpoint_path"
    ],
    tpu.BatchConfig: [
        "num_batch_threads max_batch_size batch_timeout_micros allowed_batch_sizes",
        "max_enqueued_batches",
    ],
    tpu.inference_on_tpu: [
        "computation inputs_to_tpu num_batch_threads max_batch_size batch_timeout_micros",
        "allowed_batch_sizes max_enqueued_batches",
    ],
    tpu.model_fn_inference_on_tpu: ["model_fn features labels config params batch_config"],
    tpu.export_estimator_savedmodel: [
        "estimator export_dir_base serving_input_receiver_fn assets_extra as_text checkpoint_path"
    ],
    estimator.export.ServingInputReceiver: [
        "features receiver_tensors receiver_tensors_alternatives"
    ],
    estimator.export.build_raw_serving_input_receiver_fn: ["features default_batch_size"],
    estimator.export.build_parsing_serving_input_receiver_fn: ["feature_spec default_batch_size"],
}


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda f: f.__qualname__)
def test_arguments_in_the_order_of_the_reference(function):
    expected = " ".join(SIGNATURES[function]).split()
    assert list(inspect.signature(function).parameters) == expected


def test_public_things_are_documented():
    for name in TPU_NAMES - {"CrossShardOptimizer"}:
        assert inspect.getdoc(getattr(tpu, name)), name
    for name in EXPORT_NAMES:
        assert inspect.getdoc(getattr(estimator.export, name)), name
    for name in ESTIMATOR_NAMES - {"VocabInfo"}:
        assert inspect.getdoc(getattr(estimator, name)), name
    for name in EXPERIMENTAL_NAMES:
        assert inspect.getdoc(getattr(estimator.experimental, name)), name
    for name, member in inspect.getmembers(estimator.Estimator):
        if not name.startswith("_"):
            assert inspect.getdoc(member), name


def test_importing_changes_nothing_in_tensorflow(forks):
    """In a process that has imported TensorFlow, and not this package."""
    code = """
import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_util, resource_variables_toggle
from tensorflow.python.training import optimizer
def state():
    return (
        sorted(dir(tf)), sorted(dir(tf.compat.v1)), sorted(dir(tf.compat.v1.train)),
        tf.executing_eagerly(), control_flow_util.ENABLE_CONTROL_FLOW_V2,
        resource_variables_toggle._DEFAULT_USE_RESOURCE,
        vars(optimizer.Optimizer).copy(), ops.get_default_graph(),
    )
dir(tf.compat.v1.train)
before = state()
import tpu_estimator_compat
assert state() == before
import sys
assert "tf_keras" not in sys.modules, "tf_keras takes seconds and few scripts need it"
"""
    done = forks.run("-c", code)
    assert done.returncode == 0, done.stderr[-3000:]


def test_what_capture_switches_is_switched_back(tmp_path):
    from tensorflow.python.ops import control_flow_util
    from tensorflow.python.training import optimizer

    compute, apply = optimizer.Optimizer.compute_gradients, optimizer.Optimizer.apply_gradients

    def model_fn(features, mode):
        raise RuntimeError("inside model_fn")

    config = estimator.RunConfig(
        model_dir=str(tmp_path), train_distribute=tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    )
    with pytest.raises(RuntimeError, match="inside model_fn"):
        estimator.Estimator(model_fn, config=config).train(
            lambda: tf.data.Dataset.from_tensors([1.0]), steps=1
        )
    assert optimizer.Optimizer.compute_gradients is compute
    assert optimizer.Optimizer.apply_gradients is apply
    assert control_flow_util.ENABLE_CONTROL_FLOW_V2
    assert tf.executing_eagerly()
