"""Proofs of `tf.contrib.learn.RunConfig`."""

import pytest

from support.proofs import proves
from support.proofs.names.estimator import input_fn, model_fn
from tpu_estimator_compat import estimator as estimators

LEARN = "tf.contrib.learn"


@proves(f"{LEARN}.RunConfig")
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


@proves(f"{LEARN}.TaskType")
def has_tasks(tasks):
    assert tasks.WORKER == "worker"


@proves(f"{LEARN}.python.learn.estimators.run_config")
def has_learn_configs(module):
    assert module.RunConfig().is_chief
