"""Proofs of what `tf.contrib.estimator` alone had."""

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import proves
from tpu_estimator_compat.estimator import Estimator

CONTRIB = "tf.contrib.estimator"


@proves(f"{CONTRIB}.clip_gradients_by_norm")
def clips(clip_gradients_by_norm):
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=[3.0, 4.0])
        optimizer = clip_gradients_by_norm(tf.train.GradientDescentOptimizer(1.0), 1.0)
        # The gradient [6, 8] has norm 10.
        train_op = optimizer.minimize(tf.reduce_sum(variable**2))
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        np.testing.assert_allclose(session.run(variable), [2.4, 3.2], rtol=1e-6)


INSIDE = f"{CONTRIB}.python.estimator"


@proves(f"{INSIDE}.extenders")
def extends(module):
    clips(module.clip_gradients_by_norm)
    assert callable(module.add_metrics)
    assert callable(module.forward_features)


@proves(f"{INSIDE}.head", f"{INSIDE}.multi_head")
def has_heads(module):
    assert module.multi_head([module.regression_head(name="a")]).logits_dimension == 1


@proves(*(f"{INSIDE}.{name}" for name in ("baseline", "dnn", "dnn_linear_combined", "linear")))
def has_models_below_heads(module):
    names = ("BaselineEstimator", "DNNEstimator", "DNNLinearCombinedEstimator", "LinearEstimator")
    assert all(issubclass(getattr(module, name), Estimator) for name in names)


@proves(f"{INSIDE}.export", f"{INSIDE}.logit_fns")
def has_builders(module):
    assert callable(module.build_supervised_input_receiver_fn_from_input_fn)
    assert callable(module.dnn_logit_fn_builder)
    assert callable(module.call_logit_fn)
