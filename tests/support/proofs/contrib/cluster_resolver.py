import pytest
import tensorflow as tf2

import tpu_estimator_compat as tpu
from support.proofs import proves
from support.proofs.names.tpu_estimator import input_fn, model_fn
from tpu_estimator_compat.engine.topology.local import LocalResolver


@proves("tf.contrib.cluster_resolver.TPUClusterResolver")
def resolves(resolver_class, tmp_path):
    for resolver in (resolver_class(""), resolver_class(), resolver_class(tpu=[""])):
        assert isinstance(resolver, LocalResolver)
        assert resolver.master() == ""
        assert not resolver  # scripts ask `if resolver:` whether there is a TPU
        config = tpu.RunConfig(cluster=resolver, model_dir=str(tmp_path))
        assert config.master == ""
        assert config.session_config.allow_soft_placement
    assert resolver_class("").cluster_spec() is None
    with pytest.raises(ValueError, match="Please provide a TPU Name to connect to"):
        resolver_class().cluster_spec()
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    estimator.train(input_fn, steps=2)
    with pytest.raises(NotImplementedError, match="multiple TPUs"):
        resolver_class(["a", "b"])
    real = resolver_class("grpc://10.0.0.1:8470")
    assert type(real) is tf2.distribute.cluster_resolver.TPUClusterResolver
    assert real.master() == "grpc://10.0.0.1:8470"


@proves("tf.contrib.cluster_resolver")
def has_resolvers(module):
    spec = tf2.train.ClusterSpec({"worker": ["a:1"]})
    assert module.SimpleClusterResolver(spec).cluster_spec() == spec
    assert module.TPUClusterResolver("").get_master() == ""
