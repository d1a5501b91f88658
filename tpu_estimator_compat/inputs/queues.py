"""Input that queue runners fill, as that of `tf.train.batch`: a session takes it off the queue.

Queues and their runners are of TensorFlow 1 alone: threads that call `Session.run`. So this input
keeps a session, whose results are the elements of a dataset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.program import graph_def
from tpu_estimator_compat.runtime import eager

_QUEUES = frozenset(
    {"FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2", "RandomShuffleQueueV2"}
)


def runners(graph: tf.Graph) -> list:
    """The queue runners of a graph, those among them that run nothing."""
    return graph.get_collection(tf.compat.v1.GraphKeys.QUEUE_RUNNERS)


def are_in(graph: tf.Graph) -> bool:
    """Whether there are queues in a graph, and runners that may fill them."""
    # Some put a runner of nothing there, to tell the original that their data end.
    return bool(runners(graph)) and not graph_def.op_types(graph).isdisjoint(_QUEUES)


def dataset(graph: tf.Graph, tensors: Sequence[tf.Tensor]) -> tf.data.Dataset:
    """What tensors are, again and again, until a queue is closed and empty.

    Each iterator has a session with variables of its own, and begins anew.

    Args:
      graph: with queues; not changed after this.
      tensors: tensors of it, fetched together.

    Returns:
      A dataset of tuples. Iterating raises what a runner raised, if one did.
    """
    with graph.as_default():
        initial = tf.group(
            tf.compat.v1.global_variables_initializer(),
            tf.compat.v1.local_variables_initializer(),
            tf.compat.v1.tables_initializer(),
        )

    def elements() -> Iterator[tuple[np.ndarray, ...]]:
        # Not in a `with`: TensorFlow goes on with a generator in whatever thread it has.
        session = tf.compat.v1.Session(graph=graph)
        coordinator = tf.train.Coordinator()
        try:
            with graph.as_default():  # for queues themselves, where all else is eager
                session.run(initial)
                threads = tf.compat.v1.train.start_queue_runners(session, coordinator)
            while True:
                try:
                    values = session.run(list(tensors))
                except tf.errors.OutOfRangeError:
                    coordinator.request_stop()
                    coordinator.join(threads)  # raises what a runner raised
                    return
                yield tuple(values)
        finally:
            coordinator.request_stop()
            session.close()

    signature = tuple(tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors)
    with eager.eager_mode(), tf.device("/cpu:0"):
        return tf.data.Dataset.from_generator(elements, output_signature=signature)
