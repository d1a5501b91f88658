"""Writes the results of an evaluation as events, with the tags of the original."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import message
from tensorflow.compat.v1 import logging
from tensorflow.core.framework import summary_pb2

Summary: Any = summary_pb2.Summary


def shown(results: dict[str, Any]) -> str:
    """`a = 1, b = 2`, sorted by name, without values that are bytes."""
    # `str` shows a float32's own digits; a format would show those of a double.
    numbers = [(k, v) for k, v in sorted(results.items()) if not isinstance(v, bytes)]
    return ", ".join(f"{name} = {value!s}" for name, value in numbers)


def write_results(
    output_dir: str,
    results: dict[str, Any],
    checkpoint_path: str | None,
    step: int | None = None,
    graph: tf.Graph | None = None,
) -> None:
    """Adds an event with the `results`, except global_step, to the event file in `output_dir`.

    A second event has the checkpoint's path, as a text tensor; without `step`, both have the step
    `results["global_step"]`. A new file begins with the evaluated `graph`, or an empty one.
    """
    step = int(results["global_step"]) if step is None else step
    logging.info("Saving dict for global step %d: %s", step, shown(results))
    summary = Summary()
    for name, value in results.items():
        if name != "global_step" and value is not None:
            _add(summary, name, value)
    with (graph or tf.Graph()).as_default():  # hooks share this cache, which needs a graph
        writer = tf.compat.v1.summary.FileWriterCache.get(output_dir)
    writer.add_summary(summary, step)
    if checkpoint_path:
        logging.info(
            "Saving 'checkpoint_path' summary for global step %d: %s", step, checkpoint_path
        )
        path = tf.make_tensor_proto(checkpoint_path, dtype=tf.string)
        writer.add_summary(Summary(value=[Summary.Value(tag="checkpoint_path", tensor=path)]), step)
    writer.flush()


def _add(summary: Any, name: str, value: Any) -> None:
    if isinstance(value, (float, int, np.float32, np.int64, np.int32)):
        summary.value.add(tag=name, simple_value=float(value))
    elif isinstance(value, bytes):
        _add_serialized(summary, name, value)
    elif isinstance(value, np.ndarray):
        summary.value.add(tag=name, node_name=name, tensor=tf.make_tensor_proto(value))
        logging.info(
            "Summary for np.ndarray is not visible in Tensorboard by default. Consider using a "
            "Tensorboard plugin for visualization (see https://github.com/tensorflow/"
            "tensorboard-plugin-example/blob/master/README.md for more information)."
        )
    else:
        logging.warning(
            "Skipping summary for %s, must be a float, np.float32, np.int64, np.int32 or int or "
            "np.ndarray or a serialized string of Summary.",
            name,
        )


def _add_serialized(summary: Any, name: str, value: bytes) -> None:
    try:
        parsed = Summary.FromString(value)
    except message.DecodeError:
        logging.warning("Skipping summary for %s, cannot parse string to Summary.", name)
        return
    for index, entry in enumerate(parsed.value):
        entry.tag = f"{name}/{index}"
    summary.value.extend(parsed.value)
