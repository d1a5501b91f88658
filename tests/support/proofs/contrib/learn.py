import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from support.proofs import answers, graph, proves
from support.proofs.contrib.predictor import trained
from support.proofs.names.estimator import input_fn, model_fn
from tpu_estimator_compat import estimator as estimators


@proves("tf.contrib.learn.RunConfig")
def configures(run_config, tmp_path):
    config = run_config(master="", evaluation_master="", model_dir=str(tmp_path), num_cores=3)
    assert (config.master, config.evaluation_master) == ("", "")
    assert (config.save_checkpoints_secs, config.save_checkpoints_steps) == (600, None)
    assert config.tf_config.inter_op_parallelism_threads == 3
    config = run_config("local", save_checkpoints_steps=2, tf_random_seed=1)
    assert (config.save_checkpoints_secs, config.save_checkpoints_steps) == (None, 2)
    with pytest.raises(NotImplementedError, match="no session on another machine"):
        run_config(master="grpc://1.2.3.4:8470")
    config = run_config(model_dir=str(tmp_path), save_checkpoints_steps=2)
    estimators.Estimator(model_fn, config=config).train(input_fn, steps=3)
    assert (tmp_path / "model.ckpt-2.index").exists()


@proves("tf.contrib.learn.ModeKeys", "tf.contrib.learn.python.learn.estimators.model_fn:ModeKeys")
def has_modes(keys):
    assert (keys.TRAIN, keys.EVAL, keys.INFER) == ("train", "eval", "infer")
    assert keys.INFER == estimators.ModeKeys.PREDICT
    with pytest.raises(ValueError, match="Invalid mode"):
        keys.validate("other")


X = np.array([1.0, 2.0], np.float32)


@proves("tf.contrib.learn.io")
def reads(module):
    with graph(), tf.Session() as session:
        batch = module.numpy_input_fn({"x": X}, batch_size=2)()
        session.run(tf.tables_initializer())
        assert sorted(session.run(batch)["x"]) == [1.0, 2.0]


@proves("tf.contrib.learn.datasets")
def reads_tables(module, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("1,2,a\n3,4,5\n")
    assert module.load_csv_with_header(str(path), np.int32, np.float32).target.tolist() == [5]
    assert module.read_data_sets(str(tmp_path), fake_data=True).train.num_examples == 10000


@proves("tf.contrib.learn.preprocessing")
def makes_ids_of_words(module):
    processor = module.VocabularyProcessor(3)
    documents = ["the cat", "the dog sat down"]
    assert np.array_equal(list(processor.fit_transform(documents)), [[1, 2, 0], [1, 3, 4]])
    assert list(module.tokenizer(["It's TPUEstimator"])) == [["It's", "TPU", "Estimator"]]


@proves("tf.contrib.learn.monitors")
def monitors(module, tmp_path):
    seen = []

    class Watching(module.EveryN):
        def every_n_step_begin(self, step):
            return ["weight/Read/ReadVariableOp:0"]

        def every_n_step_end(self, step, outputs):
            [value] = outputs.values()
            seen.append((step, float(value) > 0))

    estimator = estimators.Estimator(
        model_fn, config=estimators.RunConfig(str(tmp_path), save_checkpoints_steps=2)
    )
    validating = module.ValidationMonitor(input_fn=input_fn, eval_steps=1, every_n_steps=2)
    plain = tf.train.StopAtStepHook(num_steps=5)
    given = [Watching(2, first_n_steps=1), plain, validating]
    hooks = module.replace_monitors_with_hooks(given, estimator)
    assert hooks[0] is plain
    assert isinstance(hooks[1], module.RunHookAdapterForMonitors)
    assert module.replace_monitors_with_hooks(None, estimator) == []
    estimator.train(input_fn, hooks=hooks, steps=9)
    assert estimator.get_variable_value("global_step") == 5
    assert [step for step, _ in seen] == [1, 3, 5]
    assert (tmp_path / "eval").exists()
    with pytest.raises(ValueError, match="Either x or input_fn should be provided"):
        module.ValidationMonitor()


@proves("tf.contrib.learn.Experiment")
def is_an_experiment(experiment, tmp_path):
    def input_fn():
        return tf2.data.Dataset.from_tensors(({"x": [1.0]}, [1.0]))

    assert experiment(trained(tmp_path), input_fn, input_fn).test()["global_step"] == 2


@proves("tf.contrib.learn.learn_runner")
def runs_an_experiment(module, tmp_path):
    def experiment_fn(output_dir):
        return module.Experiment(trained(output_dir), list, list, train_steps=1)

    assert module.run(experiment_fn, str(tmp_path), schedule="train").model_dir == str(tmp_path)


answers(
    {
        "tf.contrib.learn.ExportStrategy": (lambda strategy: strategy("mine", list).name, "mine"),
        "tf.contrib.learn.make_export_strategy": (lambda make: make(list).name, "Servo"),
        "tf.contrib.learn.TaskType": (lambda tasks: tasks.WORKER, "worker"),
        "tf.contrib.learn.python.learn.estimators.run_config": (
            lambda module: module.RunConfig().is_chief,
            True,
        ),
    }
)
