"""Proofs of `tf.contrib.learn.Experiment` and its runner."""

import tensorflow as tf2

from support.proofs import below, proves
from support.proofs.contrib.predictor import trained

CONTRIB = "tf.contrib"
LEARN = f"{CONTRIB}.learn"


@proves(f"{LEARN}.Experiment")
def is_an_experiment(experiment, tmp_path):
    def input_fn():
        return tf2.data.Dataset.from_tensors(({"x": [1.0]}, [1.0]))

    assert experiment(trained(tmp_path), input_fn, input_fn).test()["global_step"] == 2


@proves(*below(f"{LEARN}.python.learn", "experiment"))
def has_the_class(module, tmp_path):
    is_an_experiment(module.Experiment, tmp_path)


@proves(f"{LEARN}.learn_runner", *below(f"{LEARN}.python.learn", "learn_runner"))
def runs_an_experiment(module, tmp_path):
    def experiment_fn(output_dir):
        return module.Experiment(trained(output_dir), list, list, train_steps=1)

    assert module.run(experiment_fn, str(tmp_path), schedule="train").model_dir == str(tmp_path)


@proves(LEARN, *below(f"{LEARN}.python.learn", ". estimators"))
def has_what_goes_with_an_estimator(module):
    names = "Experiment ExportStrategy RunConfig learn_runner make_export_strategy monitors"
    assert set(names.split()) <= set(module.__all__)


@proves(f"{LEARN}.NanLossDuringTrainingError")
def has_the_error(error):
    assert "NaN loss during training" in str(error())
