import pytest
import tensorflow as tf

from tpu_estimator_compat.config import RunConfig


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"save_summary_steps": -1}, r"save_summary_steps should be >= 0 \(got -1\)"),
        ({"keep_checkpoint_max": -2}, r"keep_checkpoint_max should be >= 0 \(got -2\)"),
        ({"tf_random_seed": "7"}, r"tf_random_seed must be integer\. \(got '7'\)"),
        ({"protocol": "http"}, r"protocol should be grpc or grpc\+verbs \(got 'http'\)"),
        ({"jit_compile": "yes"}, r"jit_compile should be True, False or None \(got 'yes'\)"),
    ],
)
def test_refusals_show_the_value(setting, message):
    with pytest.raises(ValueError, match=message):
        RunConfig(**setting)


class Distribute:
    """What `tf.contrib.distribute.DistributeConfig` was."""

    def __init__(self, train=None, evaluate=None, remote=None):
        self.train_distribute, self.eval_distribute = train, evaluate
        self.remote_cluster = remote


def test_strategy_given_twice_is_refused(strategy):
    one = strategy(1)
    with pytest.raises(ValueError, match=r"`experimental_distribute\.train_distribute` can be set"):
        RunConfig(train_distribute=one, experimental_distribute=Distribute(one))


def test_remote_cluster_is_refused(strategy):
    with pytest.raises(ValueError, match="remote_cluster` is not supported"):
        RunConfig(experimental_distribute=Distribute(strategy(1), remote={"worker": ["w:1"]}))


@pytest.mark.parametrize("argument", ["train_distribute", "eval_distribute"])
def test_parameter_server_strategy_is_refused(argument):
    servers = object.__new__(tf.distribute.experimental.ParameterServerStrategy)
    with pytest.raises(ValueError, match="ClusterCoordinator"):
        RunConfig(**{argument: servers})


def test_parameter_server_strategy_is_refused_in_experimental_distribute():
    servers = object.__new__(tf.distribute.experimental.ParameterServerStrategy)
    with pytest.raises(ValueError, match="ClusterCoordinator"):
        RunConfig(experimental_distribute=Distribute(servers))
