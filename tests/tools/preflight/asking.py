"""A preflight of one model function, on batches of zeros, and its report."""

import numpy as np
import tensorflow as tf

import tpu_estimator_compat as tec

from . import models


def input_fn(params):
    size = params["batch_size"]
    features = {"x": np.zeros([size, models.WIDTH], np.float32)}
    return tf.data.Dataset.from_tensors((features, np.zeros([size], np.int32)))


def estimator(model_fn, folder, **kwargs):
    given = {"train_batch_size": 32, "eval_batch_size": 32, "predict_batch_size": 32, **kwargs}
    return tec.TPUEstimator(model_fn, config=tec.RunConfig(model_dir=str(folder)), **given)


def report(
    model_fn, folder, topology="v5e:2x2", mode="train", depth="lower", data=input_fn, **kwargs
):
    [found] = (
        estimator(model_fn, folder, **kwargs).preflight(data, topology, mode, depth=depth).reports
    )
    return found
