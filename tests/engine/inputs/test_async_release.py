import itertools
import subprocess
import sys
import threading

import pytest
import tensorflow as tf
from support import TESTS

from tpu_estimator_compat.engine.inputs.async_release import AsyncRelease, end_iterators
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput

from .calls import called

LONG = 30.0  # seconds; only a test that fails waits for so long


class Source:
    def __init__(self):
        self.given_up = threading.Event()
        self.released = threading.Event()
        self.freed = threading.Event()

    def __call__(self):
        try:
            while True:
                yield 1.0
        finally:
            self.given_up.set()
            if self.released.wait(LONG):
                self.freed.set()

    def deployed_input(self, strategy):
        spec = tf.TensorSpec([], tf.float32)
        data = tf.data.Dataset.from_generator(self, output_signature=spec)
        return DeployedInput([], lambda: [data], strategy, spec)

    def release(self, strategy):
        """What frees an iterator that has given an element, and that nobody else has."""
        iterator = iter(self.deployed_input(strategy))
        next(iterator)
        return AsyncRelease(iterator)


@pytest.fixture
def source():
    source = Source()
    yield source
    source.released.set()


@pytest.mark.parametrize("replicas", [1, 2])
def test_nobody_waits_for_a_destructor(strategy, replicas, source):
    source.release(strategy(replicas)).drop()
    assert source.given_up.wait(LONG)
    assert not source.freed.is_set()
    source.released.set()
    assert source.freed.wait(LONG)


def test_several_destructors_are_waited_for_at_the_same_time(strategy, source):
    other = Source()
    iterators = [iter(each.deployed_input(strategy(1))) for each in (source, other)]
    for iterator in iterators:
        next(iterator)
    release = AsyncRelease(iterators)
    del iterator, iterators
    release.drop()
    assert source.given_up.wait(LONG)
    assert other.given_up.wait(LONG)
    assert not source.freed.is_set()
    assert not other.freed.is_set()
    for each in (source, other):
        each.released.set()
        assert each.freed.wait(LONG)


def test_a_destructor_without_reason_to_wait_is_done_at_once(strategy, source):
    source.released.set()
    release = source.release(strategy(1))
    assert not source.given_up.is_set()
    release.drop()
    assert source.given_up.wait(LONG)


def test_without_threads_it_is_freed_all_the_same(strategy, source, monkeypatch):
    def start(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    source.released.set()
    release = source.release(strategy(1))
    monkeypatch.setattr(threading.Thread, "start", start)
    release.drop()
    assert source.freed.is_set()


def test_an_iterator_that_somebody_has_is_freed_when_nobody_has(strategy, source):
    iterator = iter(source.deployed_input(strategy(1)))
    kept = [iterator]
    next(iterator)
    release = AsyncRelease(iterator)
    del iterator
    release.drop()
    assert float(next(kept[0])) == 1.0
    kept.clear()
    assert source.given_up.wait(LONG)
    assert not source.freed.is_set()
    source.released.set()
    assert source.freed.wait(LONG)


def elements():
    dense = tf.data.Dataset.range(9).map(lambda i: (tf.cast(i, tf.float32), tf.as_string([i, i])))
    sparse = dense.map(lambda f, s: (f, s, tf.sparse.from_dense([f, f])))
    return tf.compat.v1.data.make_one_shot_iterator(sparse.batch(2).repeat()).get_next()


def test_an_iterator_of_the_graph_is_at_its_end():
    """Whatever it gives: numbers, text, what is sparse, of sizes that nobody knows."""
    found = called(lambda: dict(enumerate(elements())))
    iterator = iter(found.dataset())
    assert next(iterator)[0].numpy().tolist() == [0, 1]
    iterators = found.store.iterators()
    assert len(iterators) == 1
    end_iterators(iterators)
    assert len(list(itertools.islice(iterator, 1000))) < 1000  # some were read ahead


TRAINS_ON_A_GENERATOR = """
import gc
import sys

import tensorflow.compat.v1 as tf

sys.path.insert(0, {tests!r})
from support.legacy_models import examples, make_estimator

kind, folder = sys.argv[1:]
features, labels = examples()


def generator():
    while True:
        yield from zip(features, labels)


def input_fn(params):
    types, shapes = (tf.float32, labels.dtype), (features.shape[1:], labels.shape[1:])
    dataset = tf.data.Dataset.from_generator(generator, types, shapes).batch(8)
    if kind == "one_shot":
        return tf.data.make_one_shot_iterator(dataset).get_next()
    iterator = tf.data.make_initializable_iterator(dataset)
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


estimator = make_estimator(folder)
for _ in range(2):
    estimator.train(input_fn, steps=3)
    gc.collect()  # which comes along anywhere
    estimator.evaluate(input_fn, steps=2)
    next(estimator.predict(input_fn))
    gc.collect()
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one_shot", "initializable"])
def test_a_collection_does_not_wait_for_a_generator(tmp_path, kind):
    """A process of its own: one that hangs does so with Python's lock, and no test goes on."""
    code = TRAINS_ON_A_GENERATOR.format(tests=str(TESTS))
    command = [sys.executable, "-c", code, kind, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.stdout == "done\n", done.stderr
