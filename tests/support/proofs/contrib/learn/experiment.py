"""Proofs of `tf.contrib.learn.Experiment` and its runner."""

import tensorflow as tf2

from support.proofs import proves
from support.proofs.contrib.predictor import trained

CONTRIB = "tf.contrib"
LEARN = f"{CONTRIB}.learn"


@proves(f"{LEARN}.Experiment")
def is_an_experiment(experiment, tmp_path):
    def input_fn():
        return tf2.data.Dataset.from_tensors(({"x": [1.0]}, [1.0]))

    assert experiment(trained(tmp_path), input_fn, input_fn).test()["global_step"] == 2


@proves("tf.contrib.learn.learn_runner")
def runs_an_experiment(module, tmp_path):
    def experiment_fn(output_dir):
        return module.Experiment(trained(output_dir), list, list, train_steps=1)

    assert module.run(experiment_fn, str(tmp_path), schedule="train").model_dir == str(tmp_path)


@proves(f"{LEARN}.NanLossDuringTrainingError")
def has_the_error(error):
    assert "NaN loss during training" in str(error())
