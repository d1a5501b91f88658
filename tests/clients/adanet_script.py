"""Grows an ensemble with adanet, and prints what it found: `adanet_script.py KIND MODEL_DIR`."""

import json
import sys

import adanet
import numpy as np
import tensorflow.compat.v1 as tf
from adanet.examples import simple_dnn

KIND, MODEL_DIR = sys.argv[1:]
X = np.random.RandomState(0).randn(256, 4).astype(np.float32)
Y = X @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)


def input_fn(params=None):
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, Y))
    return data.repeat().batch(32, drop_remainder=True)


def make_estimator():
    columns = [tf.feature_column.numeric_column("x", shape=4)]
    optimizer = tf.train.RMSPropOptimizer(0.01)
    common = {
        "head": tf.estimator.RegressionHead(loss_reduction="sum_over_batch_size"),
        "subnetwork_generator": simple_dnn.Generator(columns, optimizer, layer_size=16, seed=42),
        "max_iteration_steps": 20,
    }
    if KIND == "Estimator":
        config = tf.estimator.RunConfig(MODEL_DIR, tf_random_seed=1)
        return adanet.Estimator(
            **common, evaluator=adanet.Evaluator(input_fn, steps=4), config=config
        )
    config = tf.estimator.tpu.RunConfig(model_dir=MODEL_DIR, tf_random_seed=1)
    return adanet.TPUEstimator(
        **common,
        use_tpu=True,
        train_batch_size=32,
        eval_batch_size=32,
        predict_batch_size=32,
        config=config,
    )


estimator = make_estimator()
found = []
for steps in 20, 40:
    estimator.train(input_fn, max_steps=steps)
    metrics = estimator.evaluate(input_fn, steps=8)
    found.append({k: v.item() for k, v in metrics.items() if not isinstance(v, bytes)})
found.append(next(estimator.predict(input_fn))["predictions"].tolist())
print("FOUND " + json.dumps(found))
