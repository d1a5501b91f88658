import pytest
import tensorflow as tf

from tpu_estimator_compat.config import TPUConfig, TPURunConfig


def resolver():
    spec = tf.train.ClusterSpec({"worker": ["w:1"]})
    return tf.distribute.cluster_resolver.SimpleClusterResolver(spec, master="grpc://w:1")


def test_run_config_has_the_original_name():
    assert TPURunConfig.__name__ == "RunConfig"


def test_run_config_takes_the_cluster():
    cluster = resolver()
    config = TPURunConfig(cluster=cluster)
    assert config.cluster is cluster
    assert config.master == config.evaluation_master == "grpc://w:1"
    assert config.session_config.isolate_session_state
    assert config.session_config.cluster_def.job[0].name == "worker"


def test_master_and_cluster_are_refused_together():
    with pytest.raises(ValueError, match=r"Both master and cluster are set\. Got master='m'"):
        TPURunConfig(master="m", cluster=resolver())


def test_cluster_and_cluster_def_are_refused_together():
    session_config = tf.compat.v1.ConfigProto()
    session_config.cluster_def.job.add(name="worker")
    with pytest.raises(ValueError, match="You cannot provide a ClusterResolver and"):
        TPURunConfig(cluster=resolver(), session_config=session_config)


def test_evaluation_master_defaults_to_the_master():
    assert TPURunConfig(master="grpc://m").evaluation_master == "grpc://m"
    assert TPURunConfig(master="grpc://m", evaluation_master="").evaluation_master == ""


def test_replacing_the_tpu_config():
    config = TPURunConfig(TPUConfig(10), save_checkpoints_steps=4)
    new = config.replace(tpu_config=TPUConfig(20), model_dir="/m")
    assert (config.tpu_config.iterations_per_loop, new.tpu_config.iterations_per_loop) == (10, 20)
    assert (new.model_dir, new.save_checkpoints_steps) == ("/m", 4)


def test_scripts_may_set_the_tpu_config():
    config = TPURunConfig()
    config._tpu_config = config.tpu_config._replace(iterations_per_loop=9)
    assert config.tpu_config.iterations_per_loop == 9
