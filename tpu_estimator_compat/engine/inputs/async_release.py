"""Frees iterators without waiting for the thread that tunes their buffers.

That thread sleeps between its rounds, twice as long each time, up to a minute. The destructor of an
iterator wakes the thread before it tells the thread to end, so that the thread often goes back to
sleep (`Model::OptimizeLoop` and `CancellationManager::StartCancel` of TensorFlow 2.21). The
destructor waits for it, and holds the GIL where Python drops the last reference.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager, functions
from tpu_estimator_compat.engine.signals import process_exit
from tpu_estimator_compat.engine.state.resources import Resource
from tpu_estimator_compat.tf_internals import context

_PATIENCE = 0.02  # seconds; a destructor whose thread does end takes less
_LATER = 0.1  # seconds until the next try to free an iterator that something still holds


class AsyncRelease:
    """The last references to an iterator of tf.data or of a strategy, dropped in threads.

    The caller drops its own references before it calls `drop`.
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
        """Frees the iterator within `_PATIENCE`, or later in threads that Python's exit waits for.

        With `hurried`, the exit does not wait: Python code of the input may block for ever.
        """
        _await([part.start(0, hurried) for part in self._parts], hurried)


def end_iterators(iterators: Sequence[Resource], *, hurried: bool = False) -> None:
    """Moves iterators of input_fn's graph to their end, which frees the datasets that they read.

    Otherwise the garbage collector frees them with the function that made them, and holds the GIL.
    If Python makes the elements, the destructor closes a generator, and waits for the GIL for ever.
    """
    with eager.eager_mode(), tf.device("/cpu:0"):
        datasets = [iterator.no_data() for iterator in iterators]

    def read(iterator: Resource, dataset: tf.data.Dataset) -> None:
        with eager.eager_mode(), tf.device("/cpu:0"):
            iterator.read(dataset)
            # Otherwise another machine may be asked to read after it has freed the iterator.
            context.context().sync_executors()

    _await(
        [
            _in_a_thread(functools.partial(read, iterator, dataset), hurried)
            for iterator, dataset in zip(iterators, datasets, strict=True)
        ],
        hurried,
    )


class _Part:
    """A reference to one of the iterators in a strategy's iterator, dropped in its own thread."""

    def __init__(self, handle: tf.Tensor):
        self._held = [_in_a_queue(handle)]
        self._handle = weakref.ref(handle)

    def start(self, seconds: float, hurried: bool = False) -> threading.Thread | None:
        """Drops the reference after `seconds`; returns the thread that does, or None if done."""
        return _in_a_thread(functools.partial(self._free, seconds), hurried, instead=self._drop)

    def _free(self, seconds: float) -> None:
        time.sleep(seconds)
        # An error's traceback may still hold the iterator in its frames.
        if (tensor := self._handle()) is not None:
            later = weakref.finalize(tensor, self.start, _LATER)
            later.atexit = False
            return
        self._drop()

    def _drop(self) -> None:
        with eager.eager_mode():
            self._held.clear()


def _in_a_thread(
    free: Callable[[], None], hurried: bool, instead: Callable[[], None] | None = None
) -> threading.Thread | None:
    """Calls `free` in a thread. Where none can start, calls `instead` or `free`; returns None."""
    daemon = hurried or process_exit.waits_no_more()
    thread = threading.Thread(target=free, name="input_release", daemon=daemon)
    try:
        thread.start()
    except RuntimeError:  # no more threads: Python is about to exit
        (instead or free)()
        return None
    return thread


def _await(threads: Sequence[threading.Thread | None], hurried: bool) -> None:
    deadline = time.monotonic() + _PATIENCE
    for thread in threads:
        if thread is not None:
            thread.join(max(0, deadline - time.monotonic()))
            if hurried and thread.is_alive():
                process_exit.end_without_waiting()


def _in_a_queue(handle: tf.Tensor) -> tf.queue.QueueBase:
    """A queue that holds a handle: TensorFlow deletes a queue and its content without the GIL."""
    with tf.device(handle.device):
        queue = tf.queue.FIFOQueue(1, [tf.resource])
        queue.enqueue(handle)
    return queue
