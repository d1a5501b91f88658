import os

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as estimators
from tpu_estimator_compat.old_names.contrib.learn import learn_runner
from tpu_estimator_compat.old_names.contrib.learn.experiment import Experiment
from tpu_estimator_compat.old_names.contrib.learn.export_strategy import (
    ExportStrategy,
    make_export_strategy,
)


def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    predictions = {"y": features["x"] * weight}
    if mode == estimators.ModeKeys.PREDICT:
        outputs = {"y": estimators.export.PredictOutput(predictions)}
        return estimators.EstimatorSpec(mode, predictions, export_outputs=outputs)
    loss = tf.reduce_mean((predictions["y"] - labels) ** 2)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return estimators.EstimatorSpec(mode, predictions, loss, train_op)


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [1.0]}, [2.0])).repeat(20)


def receiver():
    x = tf.placeholder(tf.float32, [None])
    return estimators.export.ServingInputReceiver({"x": x}, {"x": x})


def made(folder, **options):
    config = estimators.RunConfig(str(folder), save_checkpoints_steps=5)
    options = {"eval_steps": 1, "eval_delay_secs": 0, "train_steps": 10, **options}
    return Experiment(estimators.Estimator(model_fn, config=config), input_fn, input_fn, **options)


class Evaluations(tf.train.SessionRunHook):
    count = 0

    def begin(self):
        self.count += 1


def test_it_trains_and_evaluates_what_is_new(tmp_path):
    seen = Evaluations()
    exports = []
    strategy = ExportStrategy("mine", lambda estimator, path: exports.append(path) or path)
    trial = made(tmp_path, eval_hooks=[seen], export_strategies=strategy, check_interval_secs=None)
    results, exported = trial.train_and_evaluate()
    assert results["global_step"] == 10
    # Each of steps 0, 5 and 10 when it is saved, before monitors are called; the last at the end.
    assert seen.count == 4
    assert exported == exports == [os.path.join(str(tmp_path), "export", "mine")]


def test_it_may_look_for_checkpoints_less_often(tmp_path):
    seen = Evaluations()
    made(tmp_path, eval_hooks=[seen], check_interval_secs=600).train_and_evaluate()
    assert seen.count == 2
    seen = Evaluations()
    made(tmp_path / "end", eval_hooks=[seen], min_eval_frequency=0).train_and_evaluate()
    assert seen.count == 1
    seen = Evaluations()
    made(tmp_path / "local", eval_hooks=[seen]).local_run()
    assert seen.count == 1


def test_each_checkpoint_may_be_exported(tmp_path):
    steps = []

    def export_fn(estimator, export_path, checkpoint_path, eval_result):
        steps.append((os.path.basename(checkpoint_path), int(eval_result["global_step"])))

    strategies = [ExportStrategy("mine", export_fn)]
    trial = made(tmp_path, checkpoint_and_export=True, export_strategies=strategies)
    results, exported = trial.train_and_evaluate()
    assert steps == [(f"model.ckpt-{step}", step) for step in (0, 5, 10)]
    assert results["global_step"] == 10
    assert exported == [None]


def test_saved_models_are_exported_and_the_oldest_go(tmp_path):
    strategy = make_export_strategy(receiver, exports_to_keep=1)
    trial = made(tmp_path, export_strategies=[strategy])
    trial.test()
    _, [path] = trial.train_and_evaluate()
    assert os.listdir(tmp_path / "export" / "Servo") == [os.path.basename(path.decode())]


def test_it_trains_and_evaluates_in_turn(tmp_path):
    seen = Evaluations()
    trial = made(tmp_path, eval_hooks=[seen], train_steps_per_iteration=4)
    results, _ = trial.continuous_train_and_eval()
    assert (seen.count, results["global_step"]) == (3, 12)
    trial = made(tmp_path / "stopped")
    results, _ = trial.continuous_train_and_eval(lambda results: results is None)
    assert results["global_step"] == 1


def test_it_evaluates_until_training_is_done(tmp_path):
    seen = Evaluations()
    trial = made(tmp_path, eval_hooks=[seen], continuous_eval_throttle_secs=0)
    trial.train()
    trial.continuous_eval()
    assert seen.count == 1
    paths = []

    def goes_on(results, checkpoint_path):
        paths.append(checkpoint_path)
        return len(paths) < 2

    trial.train_steps = None
    trial.continuous_eval(continuous_eval_predicate_fn=goes_on)
    assert paths == [None, str(tmp_path / "model.ckpt-10")]


def test_the_runner_calls_the_schedule(tmp_path):
    results, _ = learn_runner.run(lambda output_dir: made(output_dir), str(tmp_path / "a"))
    assert results["global_step"] == 10

    def of_config(run_config, hparams):
        assert hparams is None
        return made(run_config.model_dir)

    config = estimators.RunConfig(str(tmp_path / "b"))
    estimator = learn_runner.run(of_config, run_config=config, schedule="train")
    assert estimator.get_variable_value("global_step") == 10


def test_wrong_calls(tmp_path):
    config = estimators.RunConfig(str(tmp_path))
    with pytest.raises(ValueError, match="Cannot provide both"):
        learn_runner.run(made, "a", run_config=config)
    with pytest.raises(ValueError, match="Must set value for `output_dir` or"):
        learn_runner.run(made)
    with pytest.raises(TypeError, match="did not return an Experiment"):
        learn_runner.run(lambda output_dir: 3, "a")
    with pytest.raises(TypeError, match="is not callable"):
        learn_runner.run(3, "a")
    with pytest.raises(ValueError, match=r"non-existent task wrong; known: .*'train_and_evaluate'"):
        learn_runner.run(lambda output_dir: made(tmp_path), "a", "wrong")
    with pytest.raises(ValueError, match=r"must be a `tf\.estimator\.Estimator`, got 3"):
        Experiment(3, input_fn, input_fn)
    with pytest.raises(ValueError, match="must be an ExportStrategy"):
        made(tmp_path, export_strategies=[3])
    with pytest.raises(ValueError, match="must be a callable"):
        made(tmp_path).continuous_train_and_eval(3)
