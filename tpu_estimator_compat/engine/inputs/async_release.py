"""Lets go of an iterator without waiting for the thread that tunes its buffers.

That thread sleeps between its rounds, twice as long each time, up to a minute. An iterator's
destructor wakes it first and tells it to end a moment later: often it has looked already, found no
reason to end, and gone back to sleep (`Model::OptimizeLoop` and `CancellationManager::StartCancel`
of TensorFlow 2.21). The destructor waits for it, and where Python drops the last reference, it
waits with Python's lock in hand.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.runtime import aside, eager, functions
from tpu_estimator_compat.engine.state.resources import Resource
from tpu_estimator_compat.tf_internals import context

_PATIENCE = 0.1  # seconds; a destructor whose thread does end takes a hundredth of that


class AsyncRelease:
    """Holds references to an iterator, to drop them last and where nobody waits.

    Args:
      iterator: of tf.data or of a distribution strategy. The caller drops its own references
        between making this and `drop`.
    """

    def __init__(self, iterator: Any):
        with eager.eager_mode():
            self._parts = [
                _Part(tensor)
                for tensor in functions.handles_of(iterator)
                # A handle on another device cannot wait in a queue of the host.
                if tensor.dtype == tf.resource and "CPU" in tensor.device
            ]

    def drop(self, *, hurried: bool = False) -> None:
        """Frees the iterator: at once as a rule, else in threads that Python's exit waits for.

        Args:
          hurried: the process is about to end, and Python code of the input may block for ever.
        """
        _await([part.start(0, hurried) for part in self._parts], hurried)


def end_iterators(iterators: Sequence[Resource], *, hurried: bool = False) -> None:
    """Has iterators of input_fn's graph free what they read; they are at their end then.

    Such an iterator goes with the function that made it, in whatever garbage collection deletes
    that: with Python's lock in hand. If Python makes what it reads, its destructor has a generator
    closed, and waits for that lock for ever.

    Args:
      iterators: of a graph.
      hurried: see `AsyncRelease.drop`.
    """
    with eager.eager_mode(), tf.device("/cpu:0"):
        datasets = [iterator.no_data() for iterator in iterators]

    def read(iterator: Resource, dataset: tf.data.Dataset) -> None:
        with eager.eager_mode(), tf.device("/cpu:0"):
            iterator.read(dataset)
            # Another machine may else be asked to read when it has let go of the iterator.
            context.context().sync_executors()

    _await(
        [
            _in_a_thread(functools.partial(read, iterator, dataset), hurried)
            for iterator, dataset in zip(iterators, datasets, strict=True)
        ],
        hurried,
    )


class _Part:
    """A reference to one of the iterators that a strategy's iterator is made of.

    Each is dropped in a thread of its own: they may all have to be waited for.
    """

    def __init__(self, handle: tf.Tensor):
        self._held = [_in_a_queue(handle)]
        self._handle = weakref.ref(handle)

    def start(self, seconds: float, hurried: bool = False) -> threading.Thread | None:
        """Drops it in a while; returns the thread that does, or None if it is done."""
        return _in_a_thread(functools.partial(self._free, seconds), hurried, instead=self._drop)

    def _free(self, seconds: float) -> None:
        time.sleep(seconds)
        # The traceback of an error has the iterator in its frames, as long as somebody has it.
        if (tensor := self._handle()) is not None:
            later = weakref.finalize(tensor, self.start, _PATIENCE)  # it is about to go, then
            later.atexit = False
            return
        self._drop()

    def _drop(self) -> None:
        with eager.eager_mode():
            self._held.clear()


def _in_a_thread(
    free: Callable[[], None], hurried: bool, instead: Callable[[], None] | None = None
) -> threading.Thread | None:
    """The thread that calls `free`; None where it, or what to do instead, is done."""
    daemon = hurried or aside.waits_no_more()
    thread = threading.Thread(target=free, name="input_release", daemon=daemon)
    try:
        thread.start()
    except RuntimeError:  # no more threads: Python is about to exit
        (instead or free)()
        return None
    return thread


def _await(threads: Sequence[threading.Thread | None], hurried: bool) -> None:
    """Waits for threads that end as soon as they should."""
    deadline = time.monotonic() + _PATIENCE
    for thread in threads:
        if thread is not None:
            thread.join(max(0, deadline - time.monotonic()))
            if hurried and thread.is_alive():
                aside.end_without_waiting()


def _in_a_queue(handle: tf.Tensor) -> tf.queue.QueueBase:
    """A queue with a handle in it.

    TensorFlow frees what is in a queue in the op that deletes the queue, and runs that op without
    Python's lock.
    """
    with tf.device(handle.device):
        queue = tf.queue.FIFOQueue(1, [tf.resource])
        queue.enqueue(handle)
    return queue
