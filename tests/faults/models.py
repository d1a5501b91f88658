"""A model_fn whose predictions can be exported."""

import tensorflow.compat.v1 as tf
from support.legacy_models import make_model_fn

import tpu_estimator_compat as tpu


def servable_model_fn(features, labels, mode, params):
    spec = make_model_fn()(tf.identity(features), labels, mode, params)
    if mode != tpu.ModeKeys.PREDICT:
        return spec
    return tpu.TPUEstimatorSpec(mode, predictions={"class": spec.predictions["class"]})
