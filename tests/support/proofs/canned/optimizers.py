"""Proofs of the optimizers of canned models."""

import tensorflow.compat.v1 as tf

from support.proofs import proves
from support.proofs.canned.models import deep


@proves(deep("optimizers"))
def has_optimizers(module):
    adagrad = module.get_optimizer_instance("Adagrad", learning_rate=0.5)
    assert isinstance(adagrad, tf.train.AdagradOptimizer)
    assert adagrad._learning_rate == 0.5
    assert module.get_optimizer_instance_v2("SGD").get_config()["learning_rate"] == 0.01
