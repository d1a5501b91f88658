import types

import numpy as np
import tensorflow as tf2

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.old_names.legacy import namespaces, table

SKIPPED = {"keras", "layers", "estimator", "compat"}
"""Of `tf.compat.v1`: namespaces that Keras 3 keeps from working, and the roots themselves."""


def modules(real, ours, path="tf", seen=None):
    """Every module of the real API below one, with ours of the same name and its path."""
    seen = set() if seen is None else seen
    if id(real) in seen:
        return
    seen.add(id(real))
    yield real, ours, path
    for name in dir(real):
        if name.startswith("_") or name in SKIPPED:
            continue
        child = getattr(real, name)
        if isinstance(child, types.ModuleType) and "tensorflow" in getattr(child, "__name__", ""):
            yield from modules(child, getattr(ours, name), f"{path}.{name}", seen)


def test_every_name_is_tensorflows_own_unless_the_table_has_it():
    rows, compared = table.load(), 0
    for real, ours, path in modules(tf2.compat.v1, tf):
        for name in dir(real):
            full = f"{path}.{name}"
            if name.startswith("_") or name in SKIPPED or rows.below(full):
                continue
            if rows.get(full) is None and full not in CHANGED:
                assert same(getattr(ours, name), getattr(real, name)), full
                compared += 1
    assert compared > 3500


def same(ours, real):
    """Whether two things are one; `import tensorflow.compat.v1.logging` makes a second module."""
    modules = isinstance(ours, types.ModuleType) and isinstance(real, types.ModuleType)
    return ours is real or (modules and ours.__file__ == real.__file__)


def test_names_of_the_api_that_look_like_pythons():
    second = namespaces.v2()
    assert second.__internal__.CompositeTensor is tf2.__internal__.CompositeTensor
    assert tf.__internal__ is tf2.compat.v1.__internal__
    assert not hasattr(tf.contrib, "__internal__")


CHANGED = {f"tf.{name}" for name in vars(tf).get("_children", ())} - {"tf.compat"}
"""What the namespace itself puts in, such as `disable_v2_behavior`."""


def test_names_of_the_table_are_listed():
    assert {"contrib", "estimator", "layers"} <= set(dir(tf))
    assert "layer_norm" in dir(tf.contrib.layers)
    assert "create_training_graph" in dir(tf.contrib.quantize)


def test_keras_is_keras_2_in_all_namespaces_of_tensorflow_2():
    v2 = namespaces.v2()
    assert v2.losses.mean_squared_error is v2.keras.losses.mean_squared_error
    assert issubclass(v2.metrics.Mean, v2.keras.metrics.Metric)
    assert issubclass(v2.optimizers.Adam, v2.keras.optimizers.Optimizer)
    dense = v2.keras.layers.Dense(2, kernel_initializer=v2.initializers.Ones())
    model = v2.keras.Sequential([dense])
    model.compile(v2.optimizers.SGD(0.1), v2.losses.MeanSquaredError(), [v2.metrics.MeanTensor()])
    assert model(np.ones([1, 3], np.float32)).numpy().tolist() == [[3.0, 3.0]]


UNCHANGED = """
import types
import tensorflow
import tf_slim
import tf_keras
from tensorflow.python.layers import normalization

lazy = set()  # TensorFlow puts a module in their place when they are first asked

def state():
    found, left = {}, [tensorflow, tf_slim, normalization]
    while left:
        module = left.pop()
        name = module.__name__
        if name in found:
            continue
        members = {n: v for n, v in vars(module).items() if n != "__warningregistry__"}
        lazy.update((name, n) for n, v in members.items() if "Lazy" in type(v).__name__)
        found[name] = {n: id(v) for n, v in members.items()}
        left += [
            v for v in members.values()
            if isinstance(v, types.ModuleType)
            and getattr(v, "__name__", "").startswith(("tensorflow.", "tf_slim."))
        ]
    return found

def touch():
    # Deprecated names and the eager context are made when they are first asked for.
    for name in dir(tensorflow.compat.v1):
        getattr(tensorflow.compat.v1, name)
    with tensorflow.Graph().as_default():
        tensorflow.compat.v1.get_variable("v", initializer=tensorflow.constant(1.0))
    tensorflow.constant(1)

import tpu_estimator_compat.estimator
touch()
before = state()
import tpu_estimator_compat.v1 as tf
tf.layers, tf.estimator.tpu.TPUEstimator, tf.contrib.tpu.TPUConfig
with tf.Graph().as_default():
    x = tf.contrib.layers.fully_connected(tf.ones([1, 2]), 3)
    x = tf.contrib.slim.batch_norm(x)
    tf.contrib.layers.layer_norm(x)
    tf.contrib.opt.AdamWOptimizer(0.1), tf.contrib.rnn.LSTMCell, tf.contrib.summary.scalar
tf.contrib.data.map_and_batch, tf.contrib.distribute.MirroredStrategy, tf.contrib.tpu.rewrite
tf.contrib.signal.stft, tf.contrib.hooks.ProfilerHook, tf.contrib.training.HParams
touch()
after = state()
assert len(before) > 300, len(before)
changed = [
    f"{name}.{n}"
    for name, members in before.items()
    for n in members.keys() | after[name].keys()
    if members.get(n) != after[name].get(n) and (name, n) not in lazy
]
assert not changed, changed
"""


def test_using_it_changes_nothing_in_tensorflow_and_tf_slim(python):
    """What `tensorflow` and `tf_slim` hold, to every depth, is the same before and after."""
    done = python("-c", UNCHANGED)
    assert done.returncode == 0, done.stderr[-3000:]
