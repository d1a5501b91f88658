"""Trains, evaluates and predicts off TPU, with every line of TensorFlow's log; prints them as JSON.

It runs with the original and with this package, and knows the difference from its arguments.
"""

import contextlib
import json
import logging
import re
import sys

import tensorflow.compat.v1 as tf

if sys.argv[1] == "original":
    from tensorflow_estimator.python.estimator.api._v1 import estimator
else:
    from tpu_estimator_compat import estimator

tpu = estimator.tpu


def model_fn(features, labels, mode, params):
    if params.get("fails"):
        raise KeyError("fails")
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    if mode == "infer":
        return tpu.TPUEstimatorSpec(mode, predictions={"y": features * weight})
    loss = tf.reduce_mean((features * weight - labels) ** 2)
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = (lambda labels: {"mean": tf.metrics.mean(labels)}, [labels])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=metrics)


def plain_fn(features, labels, mode):
    return model_fn(features, labels, mode, {}).as_estimator_spec()


def input_fn(params=None):
    del params
    data = tf.data.Dataset.from_tensor_slices(([1.0, 2.0, 3.0], [2.5, 4.1, 6.7]))
    return data.repeat().batch(2, drop_remainder=True)


def predict_fn(params=None):
    del params
    return tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(2, drop_remainder=True)


_OF_THE_RUN = ("deprecated", "global_step/sec", "examples/sec", "global step (tf.train")
"""The last warns of what the original sees of the step by chance. Speeds it tells more often."""


class Lines(logging.Handler):
    """Keeps lines, without what is of one run only."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        text = record.getMessage()
        if any(words in text for words in _OF_THE_RUN):
            return
        # Whether the original shows the step before it or after is left to chance.
        text = re.sub(r"(?<= step = )\d+", lambda found: str(int(found[0]) // 10 * 10), text)
        text = re.sub(r"\(\d+\.\d+ sec\)|\d{4}-\d\d-\d\d[T-][\d:]+|: \d+\.\d+s$", "TIME", text)
        text = re.sub(r"Using config: .*", "Using config", text, flags=re.DOTALL)
        text = text.replace(sys.argv[2], "FOLDER")
        self.lines.append(f"{record.levelname} {text}")


def made(name, params=None, **kwargs):
    config = tpu.RunConfig(
        model_dir=f"{sys.argv[2]}/{name}",
        log_step_count_steps=10,
        save_checkpoints_steps=20,
        tpu_config=tpu.TPUConfig(iterations_per_loop=10),
    )
    sizes = {f"{mode}_batch_size": 2 for mode in ("train", "eval", "predict")}
    return tpu.TPUEstimator(
        model_fn, config=config, use_tpu=False, params=params or {}, **sizes, **kwargs
    )


def all_modes(an_estimator):
    an_estimator.train(input_fn, max_steps=40)
    an_estimator.evaluate(input_fn, steps=10)
    list(an_estimator.predict(predict_fn))


def fails():
    an_estimator = made("fails", {"fails": True}, eval_on_tpu=False)
    for method in (an_estimator.train, an_estimator.evaluate):
        with contextlib.suppress(KeyError):
            method(input_fn, steps=1)
    with contextlib.suppress(KeyError):
        list(an_estimator.predict(predict_fn))


def abandons():
    predictions = made("tpu").predict(predict_fn)
    next(predictions)
    predictions.close()


def logged(call):
    logger = logging.getLogger("tensorflow")
    handler = Lines()
    logger.addHandler(handler)
    try:
        call()
    finally:
        logger.removeHandler(handler)
    return handler.lines


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    config = estimator.RunConfig(log_step_count_steps=10, model_dir=f"{sys.argv[2]}/plain")
    found = {
        "tpu": logged(lambda: all_modes(made("tpu"))),
        "plain": logged(lambda: all_modes(estimator.Estimator(plain_fn, config=config))),
        "fails": logged(fails),
        "abandons": logged(abandons),
    }
    print(json.dumps(found))
