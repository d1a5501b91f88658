"""Subclasses of estimators, and what their original called by private names; prints JSON.

It runs with the original and, by `run`, with this package, and knows no difference.
"""

import json
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow_estimator.python.estimator import estimator as estimator_lib
from tensorflow_estimator.python.estimator import model_fn as model_fn_lib
from tensorflow_estimator.python.estimator import run_config as run_config_lib
from tensorflow_estimator.python.estimator import util
from tensorflow_estimator.python.estimator.tpu import tpu_estimator
from tensorflow_estimator.python.estimator.tpu import util as tpu_util


def model_fn(features, labels, mode, params):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((features * weight - labels) ** 2)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, features * weight, loss, train_op)


def input_fn(params=None):
    return tf.data.Dataset.from_tensors(([1.0], [2.0])).repeat()


class Plain(tf.estimator.Estimator):
    def extra(self):
        return 1


class Training(tf.estimator.Estimator):
    def train(self, *args, **kwargs):
        return super().train(*args, **kwargs)


class Internal(tf.estimator.Estimator):
    def _train_model(self, *args):
        return None


class OnTpu(tf.estimator.tpu.TPUEstimator):
    @property
    def config(self):
        return None


class Latest(tf.estimator.Estimator):
    def latest_checkpoint(self):
        return "mine"


class OnYourOwn(tf.estimator.Estimator):
    def _assert_members_are_not_overridden(self):
        pass

    def eval_dir(self, name=None):
        return "mine"


def told(call):
    try:
        return str(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def subclasses():
    config = tf.estimator.tpu.RunConfig()
    return {
        "plain": told(lambda: Plain(model_fn, params={}).extra()),
        "training": told(lambda: Training(model_fn, params={})),
        "internal": told(lambda: Internal(model_fn, params={})),
        "on_tpu": told(lambda: OnTpu(model_fn, config=config, use_tpu=False, train_batch_size=1)),
        "latest": told(lambda: Latest(model_fn, params={}).latest_checkpoint()),
        "on_your_own": told(lambda: OnYourOwn(model_fn, params={}).eval_dir()),
    }


def global_step(estimator):
    with tf.Graph().as_default() as graph:
        step = estimator._create_and_assert_global_step(graph)
        return [step is tf.train.get_global_step(), step.op.name]


def parsed(result):
    with tf.Graph().as_default():
        features, labels, hooks = util.parse_input_fn_result(result())
        with tf.train.MonitoredSession(hooks=hooks) as session:
            values = [session.run(x).tolist() for x in (features, labels) if x is not None]
        return [values, len(hooks)]


def update_ops():
    with tf.Graph().as_default(), tf.Session() as session:
        metrics = {"b": tf.metrics.mean([1.0, 3.0]), "a": tf.metrics.mean([5.0])}
        update, values = estimator_lib._extract_metric_update_ops(metrics)
        session.run(tf.local_variables_initializer())
        session.run(update)
        return [update.type, {name: float(v) for name, v in session.run(values).items()}]


def internals():
    folder = tempfile.mkdtemp()
    estimator = tf.estimator.Estimator(model_fn, folder, params={})
    estimator.train(input_fn, steps=3)
    config = run_config_lib.RunConfig(model_dir=folder)
    spec = model_fn_lib._TPUEstimatorSpec("infer", predictions={"x": tf.constant(1)})
    load = estimator_lib._load_global_step_from_checkpoint_dir
    scalars = {"b": np.float32(6.9600205), "a": 1, "c": b"bytes"}
    return {
        "step": [int(load(where)) for where in (folder, "/no/such/folder", None)],
        "global_step": global_step(estimator),
        "dataset": parsed(input_fn),
        "tensors": parsed(lambda: (tf.constant(1.0), tf.constant(2.0))),
        "features": parsed(lambda: tf.constant(1.0)),
        "three": told(lambda: util.parse_iterator_result((1, 2, 3)))[:70],
        "fn_args": told(lambda: util.fn_args(model_fn)),
        "updates": update_ops(),
        "shown": estimator_lib._dict_to_str(scalars),
        "hooks": told(lambda: estimator_lib._check_hooks_type([1])),
        "listeners": told(lambda: estimator_lib._check_listeners_type([1])),
        "no_listeners": told(lambda: estimator_lib._check_listeners_type(None)),
        "verified": told(lambda: estimator_lib._verify_model_fn_args(lambda x: x, None))[-32:],
        "missing": told(lambda: estimator_lib._check_checkpoint_available("/no/such/folder"))[:50],
        "device": told(lambda: estimator_lib._get_replica_device_setter(config)),
        "warm": told(lambda: estimator_lib._get_default_warm_start_settings("/a")[0]),
        "arguments": sorted(model_fn_lib._VALID_MODEL_FN_ARGS),
        "fields": [spec.mode, spec.host_call, sorted(spec.predictions)],
        "environment": [run_config_lib._TF_CONFIG_ENV, run_config_lib._SERVICE_KEY],
        "loops": [list(tpu_util.parse_iterations_per_loop(x)) for x in (3, "2m")],
        "positive": told(lambda: tpu_util.check_positive_integer(0, "it")),
        "keys": [tpu_estimator._BATCH_SIZE_KEY, tpu_estimator._CTX_KEY, tpu_estimator._USE_TPU_KEY],
        "reserved": list(tpu_estimator._RESERVED_PARAMS_KEYS),
        "speed": tpu_estimator.ExamplesPerSecondHook.__mro__[1].__name__,
    }


if __name__ == "__main__":
    tf.disable_v2_behavior()
    tf.logging.set_verbosity("ERROR")
    found = {"subclasses": subclasses(), "internals": internals()}
    print(json.dumps(found))
