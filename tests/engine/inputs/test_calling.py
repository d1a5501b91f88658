import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as tf_estimator
from tpu_estimator_compat.engine.inputs.calling import check_apart

from .calls import called, elements


def _one_shot():
    data = tf.data.Dataset.range(6).batch(4, drop_remainder=True)
    value = tf.data.make_one_shot_iterator(data).get_next()
    return {"x": value * 2}, value


def _initializable():
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(2))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def _looked_up():
    pairs = tf.lookup.KeyValueTensorInitializer([0, 1], [10, 20])
    return tf.sparse.from_dense([tf.lookup.StaticHashTable(pairs, 0).lookup(tf.constant([7, 1]))])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: tf.data.Dataset.range(6).map(lambda i: ({"x": i}, i)).batch(4),
            [({"x": [0, 1, 2, 3]}, [0, 1, 2, 3]), ({"x": [4, 5]}, [4, 5])],
        ),
        (_one_shot, [({"x": [0, 2, 4, 6]}, [0, 1, 2, 3])]),
        (_initializable, [0, 1]),
        (_looked_up, [[[0, 20]]] * 3),
        (lambda: (np.arange(2), None), [([0, 1], ())] * 3),
    ],
)
def test_elements_of_datasets_and_tensors(call, expected):
    found = elements(call, count=3)
    assert tf.nest.map_structure(lambda value: np.asarray(value).tolist(), found) == expected


def test_bare_tensors_are_fresh_in_every_element():
    found, again = (elements(lambda: tf.random.normal([3]), count=2, seed=5) for _ in range(2))
    assert not np.allclose(found[0], found[1])
    np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("batched", [True, False])
def test_specs_are_kept(batched):
    def call():
        dataset = tf.data.Dataset.range(8)
        return dataset.batch(4, drop_remainder=True) if batched else dataset

    spec = called(call).element_spec
    assert spec.shape == ([4] if batched else [])


@pytest.mark.parametrize(
    ("call", "python", "state", "end"),
    [
        (lambda: tf.data.Dataset.range(3), False, False, True),
        (lambda: tf.random.normal([3]), False, False, False),
        (lambda: tf.train.get_global_step(), False, True, False),
        (lambda: tf.py_func(lambda: 1, [], tf.int64), True, False, False),
        (lambda: tf.data.Dataset.range(3).map(_counted), False, True, True),
        (lambda: tf.data.Dataset.from_generator(lambda: iter([1]), tf.int64), True, False, True),
        (lambda: tf.train.input_producer(tf.constant([1])).dequeue(), True, False, True),
        (lambda: (_one_shot()[1], tf.ones([2])), False, False, True),
        (lambda: (tf.ones([2]), _one_shot()[1]), False, False, False),  # labels do not end it
    ],
)
def test_what_elements_are_made_of(call, python, state, end):
    found = called(call)
    assert (found.runs_python, found.has_state, found.has_end) == (python, state, end)


def _position():
    position = tf.get_variable("position", [], initializer=tf.zeros_initializer(), trainable=False)
    return tf.assign_add(position, 1.0)


@pytest.mark.parametrize(
    ("call", "on_tpu", "name"),
    [
        (lambda: tf.cast(tf.train.get_global_step(), tf.float32), False, "global_step"),
        (lambda: tf.get_variable("weight", [2]) + 1.0, False, "weight"),
        (_position, True, "position"),
        (_position, False, None),
        (lambda: tf.random.normal([3]), True, None),
    ],
)
def test_what_only_devices_have_is_refused(call, on_tpu, name):
    """A position of the input's own is the host's, but on TensorFlow's TPUs."""
    found = called(call)
    if name is None:
        check_apart(found, on_tpu=on_tpu)
        return
    with pytest.raises(NotImplementedError, match=f"input_fn reads {name}. Such variables are on"):
        check_apart(found, on_tpu=on_tpu)


def _counted(i):
    return i + tf.train.get_global_step(tf.get_default_graph().outer_graph)


SCRIPT = pathlib.Path(__file__).with_name("blocked_input.py")
CASES = [
    ("dataset", "blocks", signal.SIGTERM, 143),
    ("dataset", "blocks", signal.SIGINT, -signal.SIGINT),
    ("ahead", "blocks", signal.SIGTERM, 143),
    ("dataset", "fails", None, 1),
    ("tensor", "blocks", signal.SIGTERM, 143),
    ("tensor", "fails", None, 1),
    ("queue", "blocks", signal.SIGTERM, 143),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "what", "number", "status"), CASES)
def test_the_process_ends(tmp_path, kind, what, number, status):
    """A process of its own: what is tested is how it ends."""
    command = [sys.executable, str(SCRIPT), kind, what, str(tmp_path)]
    root = SCRIPT.parents[2]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": root}
    with subprocess.Popen(command, **pipes) as process:
        try:
            if number is not None:
                assert process.stdout.readline() == "blocked\n"
                process.send_signal(number)
            _, errors = process.communicate(timeout=100)
        finally:
            process.kill()
    assert process.returncode in (status, 128 - status if status < 0 else status), errors[-3000:]
    if number == signal.SIGTERM:
        step = int(tf2.train.latest_checkpoint(str(tmp_path)).rpartition("-")[2])
        assert 0 < step < 30 if kind == "ahead" else 0 <= step <= 4
    else:
        assert ("KeyboardInterrupt" if number else "RuntimeError: no more of this") in errors


def test_a_pair_of_features_without_labels(tmp_path):
    seen = []

    def model_fn(features, labels, mode):
        seen.append((type(features), len(features), labels))
        a, b = features
        total = tf.reduce_sum(a, axis=1) + b
        if mode == tf_estimator.ModeKeys.PREDICT:
            return tf_estimator.EstimatorSpec(mode, predictions={"total": total})
        step = tf.train.get_global_step()
        return tf_estimator.EstimatorSpec(
            mode, loss=tf.reduce_mean(total), train_op=step.assign_add(1)
        )

    def finite():
        x, y = np.ones([4, 2], np.float32), np.arange(4, dtype=np.float32)
        data = tf_estimator.inputs.numpy_input_fn(x, y, batch_size=4, shuffle=False)()
        return data, None

    est = tf_estimator.Estimator(model_fn, str(tmp_path))
    est.train(lambda: ((tf.ones([4, 2]), tf.constant([1.0, 2.0, 3.0, 4.0])), None), steps=1)
    found = [float(p["total"]) for p in est.predict(finite)]
    assert found == [2.0, 3.0, 4.0, 5.0]
    assert seen == [(tuple, 2, None), (tuple, 2, None)]


def _of_another_graph():
    with tf.Graph().as_default():
        return tf.zeros([2, 1])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_tensors_of_another_graph_fail_where_they_are_used(tmp_path, jit_compile):
    def model_fn(features, labels, mode):
        loss = tf.reduce_mean(features)
        return tf_estimator.EstimatorSpec(mode, features, loss, tf.no_op())

    config = tf_estimator.RunConfig(str(tmp_path), jit_compile=jit_compile)
    estimator = tf_estimator.Estimator(model_fn, config=config)
    with pytest.raises(ValueError, match="must be from the same graph as"):
        estimator.train(lambda: (_of_another_graph(), tf.ones([2, 1])), steps=1)
    if not jit_compile:
        found = estimator.predict(lambda: (tf.ones([2, 1]), _of_another_graph()))
        assert next(found) == 1
