"""save_input_state: a restart goes on with the example that comes next, bit for bit."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import variables
from support.legacy_models import examples, make_estimator, train_input_fn, untuned


def shuffled(params):
    """Buffers of shuffles and prefetching, and readers in parallel."""
    dataset = tf.data.Dataset.range(4).interleave(
        lambda shard: tf.data.Dataset.from_tensor_slices(examples()).shard(4, shard),
        cycle_length=3,
        num_parallel_calls=2,
    )
    dataset = dataset.shuffle(20).repeat().map(lambda x, y: (x * 2.0, y), num_parallel_calls=2)
    return dataset.batch(params["batch_size"], drop_remainder=True).prefetch(3)


def ragged(params):
    """Batches of unequal sizes."""
    dataset = tf.data.Dataset.from_tensor_slices(examples(60)).batch(16)
    return dataset.repeat().shuffle(3)


def same(one, other):
    assert one.keys() == other.keys()
    return all(np.array_equal(one[n], other[n]) for n in one)


@pytest.mark.parametrize(
    ("use_tpu", "replicas", "input_fn"),
    [(False, 1, shuffled), (False, 2, ragged), (True, 1, shuffled), (True, 2, shuffled)],
)
def test_parts_equal_the_whole(tmp_path, strategy, use_tpu, replicas, input_fn):
    def make(name, **kwargs):
        where = strategy(replicas)
        return make_estimator(
            tmp_path / name, use_tpu=use_tpu, loop=3, train_distribute=where, **kwargs
        )

    make("whole").train(input_fn, max_steps=20)
    whole = variables(make("whole"))
    for steps in (7, 8, 20):  # one short of a loop, in the middle of an epoch
        make("parts", save_input_state=True).train(input_fn, max_steps=steps)
    assert same(variables(make("parts")), whole)
    for steps in (7, 20):  # otherwise the data begin anew, and that can be seen
        make("others", save_input_state=False).train(input_fn, max_steps=steps)
    assert not same(variables(make("others")), whole)


def test_files_come_and_go_with_their_checkpoints(tmp_path):
    kwargs = {"save_checkpoints_steps": 2, "keep_checkpoint_max": 2}
    make_estimator(tmp_path, save_input_state=True, **kwargs).train(train_input_fn, steps=6)
    kept = sorted(n for n in os.listdir(tmp_path) if ".input-" in n)
    files = ("data-00000-of-00001", "index")
    assert kept == [f"model.ckpt-{n}.input-00000-of-00001.{s}" for n in (4, 6) for s in files]
    make_estimator(tmp_path, **kwargs).train(train_input_fn, steps=6)
    make_estimator(tmp_path, **kwargs).train(train_input_fn, steps=2)
    assert [n for n in os.listdir(tmp_path) if ".input-" in n] == []


def test_checkpoints_without_a_position_restart_the_input(tmp_path, caplog):
    make_estimator(tmp_path).train(train_input_fn, steps=3)
    make_estimator(tmp_path, save_input_state=True).train(train_input_fn, steps=3)
    assert "no position of the input beside" in caplog.text


def test_a_damaged_position_falls_back_to_the_checkpoint_before(tmp_path, caplog):
    def make():
        return make_estimator(tmp_path, save_input_state=True, save_checkpoints_steps=4)

    make().train(shuffled, steps=8)
    whole = variables(make())
    path = tmp_path / "model.ckpt-8.input-00000-of-00001.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:10])
    make().train(shuffled, max_steps=9)
    assert "Falling back to checkpoint" in caplog.text
    assert make().latest_checkpoint().endswith("-9")
    reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt-8"))
    assert same({n: reader.get_tensor(n) for n in whole}, whole)


def fewer(params):
    """Of the same operations as `train_input_fn`."""
    dataset = tf.data.Dataset.from_tensor_slices(examples(32))
    return untuned(dataset.repeat().batch(params["batch_size"], drop_remainder=True))


@pytest.mark.parametrize("first", [shuffled, fewer])
def test_another_input_pipeline_is_refused(tmp_path, first):
    make_estimator(tmp_path, save_input_state=True).train(first, steps=3)
    with pytest.raises(ValueError, match="does not fit this input_fn"):
        make_estimator(tmp_path, save_input_state=True).train(train_input_fn, steps=3)


def with_table(params):
    keys = tf.lookup.KeyValueTensorInitializer([0, 1], [0, 1])
    table = tf.lookup.StaticHashTable(keys, 0)
    return train_input_fn(params).map(lambda x, y: (x, table.lookup(y)))


def with_python(params):
    return train_input_fn(params).map(lambda x, y: (x, tf.ensure_shape(same_number(y), y.shape)))


def same_number(y):
    return tf.py_func(lambda value: value, [y], tf.int32)


@pytest.mark.parametrize("input_fn", [with_table, with_python])
def test_what_has_another_name_in_each_process_is_no_other_input(tmp_path, input_fn, caplog):
    for steps in (3, 6):
        make_estimator(tmp_path, save_input_state=True).train(input_fn, max_steps=steps)
        with tf.Graph().as_default():
            same_number(tf.zeros([1], tf.int32))  # another number of Python functions
    assert "starts anew" not in caplog.text.replace("and starts anew after a restart", "")


def by_saver(folder):
    """Overwrites the checkpoint of step 4 as TensorFlow does, with other values."""
    path = str(folder / "model.ckpt-4")
    reader = tf.train.load_checkpoint(path)
    with tf.Graph().as_default(), tf.Session() as session:
        for name in reader.get_variable_to_shape_map():
            value = reader.get_tensor(name)
            tf.get_variable(name, initializer=value * (1 if name == "global_step" else 0))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path, write_state=False, write_meta_graph=False)


def by_training(folder):
    """The same checkpoint, written by a training that did not save the position."""
    make_estimator(folder).train(train_input_fn, max_steps=4)
    (folder / "model.ckpt-4.index").write_text("damaged")
    make_estimator(folder).train(train_input_fn, max_steps=4)


def from_step_2(folder):
    for path in folder.glob("model.ckpt-2.input-*"):
        path.rename(folder / path.name.replace("-2.", "-4."))


def of_another_model(folder):
    make_estimator(folder / "other", save_input_state=True).train(shuffled, max_steps=4)
    for path in (folder / "other").glob("model.ckpt-4.input-*"):
        path.rename(folder / path.name)


@pytest.mark.parametrize("replace", [by_saver, by_training, from_step_2, of_another_model])
def test_a_position_of_another_checkpoint_is_refused_by_name(tmp_path, caplog, replace):
    def train(folder):
        config = {"save_input_state": True, "save_checkpoints_steps": 2}
        make_estimator(folder, **config).train(train_input_fn, max_steps=4)

    train(tmp_path)
    replace(tmp_path)
    caplog.clear()
    train(tmp_path / "new")
    assert "save_input_state" not in caplog.text
    make_estimator(tmp_path, save_input_state=True).train(train_input_fn, max_steps=6)
    [said] = [r.getMessage() for r in caplog.records if "save_input_state" in r.getMessage()]
    assert "model.ckpt-4" in said
    assert said.endswith("the input starts anew.")


def test_sources_whose_position_cannot_be_saved_are_refused(tmp_path):
    def generator(params):
        def rows():
            while True:
                yield np.ones([16, 4], np.float32), np.zeros([16], np.int32)

        spec = (tf.TensorSpec([16, 4], tf.float32), tf.TensorSpec([16], tf.int32))
        return tf.data.Dataset.from_generator(rows, output_signature=spec)

    def tensors(params):
        return tf.data.make_one_shot_iterator(train_input_fn(params)).get_next()

    for input_fn, message in (
        (generator, "cannot be saved.*Generator"),
        (tensors, "not a Dataset"),
    ):
        with pytest.raises(ValueError, match=message):
            make_estimator(tmp_path, save_input_state=True).train(input_fn, steps=3)


def test_a_saver_hook_of_the_users_own_is_refused(tmp_path):
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2)
    with pytest.raises(ValueError, match="CheckpointSaverHook of your own"):
        make_estimator(tmp_path, save_input_state=True).train(train_input_fn, hooks=[hook], steps=3)


def test_ops_with_a_state_of_their_own_are_named(tmp_path, caplog):
    def noisy(params):
        return train_input_fn(params).map(lambda x, y: (x + tf.random.uniform(tf.shape(x)), y))

    make_estimator(tmp_path, save_input_state=True).train(noisy, steps=3)
    assert "save_input_state=True: RandomUniform is stateful. Its state is not saved" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("kills", [25, pytest.param(100, marks=pytest.mark.full)])
def test_training_survives_being_killed_at_any_moment(kills, tmp_path):
    """No unreadable checkpoint, at most one interval lost, and the end is the same bit for bit."""
    script = pathlib.Path(__file__).with_name("kills.py")
    done = subprocess.run(
        [sys.executable, script, str(kills), tmp_path], capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["kills"] >= kills
    assert found["chains"] >= 2
    assert found["unfinished"] > 0, "no save was hit"
    assert len(found["lost"]) > kills / 2, "few trainings came to make steps"
