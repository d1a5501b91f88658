"""A model whose predictions can be exported."""

import tensorflow.compat.v1 as tf
from support.legacy_models import make_model_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as tf_estimator


def servable_model_fn(features, labels, mode, params):
    spec = make_model_fn()(tf.identity(features), labels, mode, params)
    if mode != tpu.ModeKeys.PREDICT:
        return spec
    return tpu.TPUEstimatorSpec(mode, predictions={"class": spec.predictions["class"]})


def serving_input_receiver():
    features = tf.placeholder(tf.float32, [None, 4])
    return tf_estimator.export.TensorServingInputReceiver(features, features)
