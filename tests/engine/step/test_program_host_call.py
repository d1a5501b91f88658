"""host_call: which steps it sees, what of the replicas, what it may do, and where."""

import glob

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn

import tpu_estimator_compat as tpu

from .host_call_models import Recorder, model_with


@pytest.mark.parametrize(
    ("replicas", "as_dict"),
    [
        (1, True),
        (2, False),
        pytest.param(1, False, marks=pytest.mark.full),
        pytest.param(2, True, marks=pytest.mark.full),
    ],
)
def test_one_call_per_step_in_order_with_all_replicas(tmp_path, strategy, replicas, as_dict):
    recorder = Recorder(as_dict)
    estimator = make_estimator(
        tmp_path, model_with(recorder), use_tpu=True, loop=5, train_distribute=strategy(replicas)
    )
    estimator.train(train_input_fn, steps=12)
    assert recorder.steps == [[n] * replicas for n in range(1, 13)]
    recorder.steps.clear()
    estimator.evaluate(train_input_fn, steps=3)
    assert recorder.steps == [[12] * replicas] * 3


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.full), 2])
def test_every_n_steps_counts_within_a_loop(tmp_path, strategy, replicas):
    recorder = Recorder()
    config = tpu.TPUConfig(iterations_per_loop=5, experimental_host_call_every_n_steps=3)

    def make(use_tpu):
        return make_estimator(
            tmp_path,
            model_with(recorder),
            use_tpu=use_tpu,
            tpu_config=config,
            train_distribute=strategy(replicas) if use_tpu else None,
        )

    make(True).train(train_input_fn, steps=12)
    assert recorder.steps == [[n] * replicas for n in (1, 4, 6, 9, 11)]
    recorder.steps.clear()
    make(True).evaluate(train_input_fn, steps=3)
    assert len(recorder.steps) == 3
    recorder.steps.clear()
    make(False).train(train_input_fn, steps=4)
    assert recorder.steps == [[13], [14], [15], [16]]


def test_every_n_steps_in_loops_that_python_interrupts(tmp_path, tuned):
    """The count goes on over the pieces that a long loop is run in."""
    tuned(few_steps=2)
    recorder = Recorder()
    config = tpu.TPUConfig(iterations_per_loop=8, experimental_host_call_every_n_steps=3)
    estimator = make_estimator(tmp_path, model_with(recorder), use_tpu=True, tpu_config=config)
    estimator.train(train_input_fn, steps=8)
    assert [s for [s, *_] in recorder.steps] == [1, 4, 7]


def test_no_step_is_lost_where_training_fails(tmp_path):
    recorder = Recorder()
    build = model_with(recorder)

    def input_fn(params):
        last = tf.data.Dataset.from_tensors(0).map(
            lambda _: tf.debugging.check_numerics(np.full([16, 4], np.nan, np.float32), "broken")
        )
        labels = tf.data.Dataset.from_tensors(np.zeros([16], np.int32))
        good = train_input_fn(params)
        return good.take(7).concatenate(tf.data.Dataset.zip((last, labels))).concatenate(good)

    estimator = make_estimator(tmp_path, build, use_tpu=True, loop=5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="broken"):
        estimator.train(input_fn, steps=12)
    assert [s for [s, *_] in recorder.steps] == [1, 2, 3, 4, 5, 6, 7]


def test_local_variables_keep_their_state_across_calls(tmp_path):
    seen = []

    def host_call(step, loss):
        def count(step, loss):
            total = tf.get_variable(
                "seen",
                [],
                tf.float32,
                tf.zeros_initializer(),
                trainable=False,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
            )
            update = tf.assign_add(total, tf.reduce_sum(tf.cast(step, tf.float32)))
            return [tf.py_func(lambda t: seen.append(float(t)), [update], [])]

        return count, [step, loss]

    estimator = make_estimator(tmp_path, model_with(host_call), use_tpu=True, loop=2)
    estimator.train(train_input_fn, steps=4)
    replicas = round(seen[0])
    assert seen == [replicas * total for total in (1, 3, 6, 10)]
    assert "seen" not in estimator.get_variable_names()


def writes_summaries(directory):
    """A host call in the style of contrib's summaries."""

    def host_call(step, loss):
        def write(step, loss):
            summary = tf.compat.v2.summary
            with summary.create_file_writer(directory).as_default(), summary.record_if(True):
                summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
                return tf.summary.all_v2_summary_ops()

        return write, [step, loss]

    return host_call


def written_steps(directory):
    events = [e for f in glob.glob(f"{directory}/*") for e in tf.train.summary_iterator(f)]
    return sorted(e.step for e in events for v in e.summary.value if v.tag == "loss")


@pytest.mark.parametrize("use_tpu", [False, True])
def test_summary_writers_under_keras(tmp_path, use_tpu):
    directory = str(tmp_path / "written")
    estimator = make_estimator(tmp_path, model_with(writes_summaries(directory)), use_tpu=use_tpu)
    data = train_input_fn({"batch_size": 16}).take(7)
    estimator.keras_model().fit(data, verbose=0)
    assert written_steps(directory) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("use_tpu", [False, True])
def test_under_keras_it_is_called_in_fit_and_evaluate(tmp_path, use_tpu):
    recorder = Recorder()
    estimator = make_estimator(tmp_path, model_with(recorder), use_tpu=use_tpu)
    model = estimator.keras_model()
    data = train_input_fn({"batch_size": 16}).take(6)
    model.fit(data, epochs=2, verbose=0)
    assert [s for [s, *_] in recorder.steps] == list(range(1, 13))
    recorder.steps.clear()
    model.evaluate(data, verbose=0)
    assert [s for [s, *_] in recorder.steps] == [12] * 6
