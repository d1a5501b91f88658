"""The end of an input: who waits for its destructor."""

import threading

import pytest
import tensorflow as tf

from tpu_estimator_compat.inputs import DeployedInput, Disposal

LONG = 30.0  # seconds; only a test that fails waits for so long


class Source:
    """A generator that goes on without an end; when it is given up, it waits for `released`."""

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

    def feed(self, strategy):
        spec = tf.TensorSpec([], tf.float32)
        return DeployedInput(
            [tf.data.Dataset.from_generator(self, output_signature=spec)], strategy
        )


@pytest.fixture
def source():
    source = Source()
    yield source
    source.released.set()


@pytest.mark.parametrize("replicas", [1, 2])
def test_nobody_waits_for_a_destructor(strategy, replicas, source):
    iterator = iter(source.feed(strategy(replicas)))
    next(iterator)
    disposal = Disposal(iterator)
    del iterator
    disposal.drop()
    assert source.given_up.wait(LONG)
    assert not source.freed.is_set()
    source.released.set()
    assert source.freed.wait(LONG)


def test_a_destructor_without_reason_to_wait_is_done_at_once(strategy, source):
    source.released.set()
    iterator = iter(source.feed(strategy(1)))
    next(iterator)
    disposal = Disposal(iterator)
    del iterator
    assert not source.given_up.is_set()
    disposal.drop()
    assert source.given_up.wait(LONG)


def test_without_threads_it_is_freed_all_the_same(strategy, source, monkeypatch):
    def start(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    source.released.set()
    iterator = iter(source.feed(strategy(1)))
    next(iterator)
    disposal = Disposal(iterator)
    del iterator
    monkeypatch.setattr(threading.Thread, "start", start)
    disposal.drop()
    assert source.freed.is_set()


def test_an_iterator_that_somebody_has_is_freed_when_nobody_has(strategy, source):
    iterator = iter(source.feed(strategy(1)))
    kept = [iterator]
    next(iterator)
    disposal = Disposal(iterator)
    del iterator
    disposal.drop()
    assert float(next(kept[0])) == 1.0
    kept.clear()
    assert source.given_up.wait(LONG)
    assert not source.freed.is_set()
    source.released.set()
    assert source.freed.wait(LONG)
