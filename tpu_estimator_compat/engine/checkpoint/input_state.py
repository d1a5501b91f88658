"""The position of the input, saved beside a checkpoint, so that a restart continues bit for bit.

TensorFlow serialises the iterator: the position in every file, the content of shuffle and prefetch
buffers, and the state of seeded shuffles. (Its symbolic checkpoints hold no buffers, but were seen
to hang in TF 2.21 on a parallel interleave behind a shuffle.) The files are
`<checkpoint>.input-00000-of-00001.*`.
"""

from __future__ import annotations

import os
import re
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint.saving import appearing_at_once
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.tf_internals import gen_dataset_ops

_IGNORE_STATEFUL, _FAIL_IF_STATEFUL = 1, 2  # tf.data's policies for ops with a state of their own
_NAME = "input_state"
_FILE = re.compile(r"(?P<checkpoint>.+-\d+)\.input-\d{5}-of-\d{5}\.(index|data-\d{5}-of-\d{5})")


def write(iterator: tf.data.Iterator, checkpoint: str) -> None:
    """Writes the position of an iterator beside `checkpoint`, a path without suffix.

    Raises ValueError if the position of this input cannot be saved.
    """
    with eager.eager_mode():
        try:
            state = gen_dataset_ops.serialize_iterator(
                iterator._iterator_resource, external_state_policy=_IGNORE_STATEFUL
            )
        except tf.errors.OpError as error:
            raise ValueError(
                "RunConfig(save_input_state=True), but the position of this input cannot be "
                f"saved: {_plain(error)}. Make the dataset from tf.data sources such as "
                "TFRecordDataset, or set save_input_state=False."
            ) from None
        with appearing_at_once(prefix(checkpoint)) as path:
            tf.raw_ops.SaveV2(
                prefix=path, tensor_names=[_NAME], shape_and_slices=[""], tensors=[state]
            )


def prefix(checkpoint: str) -> str:
    return f"{checkpoint}.input-00000-of-00001"


def restore(iterator: tf.data.Iterator, checkpoint: str) -> bool:
    """Moves `iterator` to the position saved beside `checkpoint`; False where there is none."""
    path = prefix(checkpoint)
    if not tf.io.gfile.exists(f"{path}.index"):
        return False
    with eager.eager_mode():
        try:
            [state] = tf.raw_ops.RestoreV2(
                prefix=user_files.readable(path),
                tensor_names=[_NAME],
                shape_and_slices=[""],
                dtypes=[tf.variant],
            )
        except tf.errors.OpError as error:
            message = f"Could not read the input's position in {path}: {error.message}"
            raise tf.errors.DataLossError(error.node_def, error.op, message) from None
        try:
            gen_dataset_ops.deserialize_iterator(iterator._iterator_resource, state)
        except tf.errors.OpError as error:
            raise ValueError(
                f"The input's position in {path} does not fit this input_fn: {error.message} "
                "Go on with the input_fn that wrote it, or set save_input_state=False to start "
                "the input anew."
            ) from None
    return True


def warn_of_stateful_ops(iterator: tf.data.Iterator) -> None:
    """Warns of an op with state that is not saved and starts anew after a restart."""
    with eager.eager_mode():
        try:
            gen_dataset_ops.serialize_iterator(
                iterator._iterator_resource, external_state_policy=_FAIL_IF_STATEFUL
            )
        except tf.errors.FailedPreconditionError as error:
            logging.warning(
                "save_input_state=True: %s. Its state is not saved and starts anew after a restart."
                " Use tf.random.stateless_* in the input pipeline for the same numbers.",
                _plain(error),
            )
        except tf.errors.OpError:
            pass  # saving raises it again


def _plain(error: tf.errors.OpError) -> str:
    """An error's message without the parts that TensorFlow adds."""
    return error.message.split(" [Op:")[0].split("}} ")[-1].rstrip(".")


def remove_orphans(directory: str) -> None:
    """Removes input positions in `directory` whose checkpoint was removed."""
    if not tf.io.gfile.isdir(directory):
        return
    names = {n.rstrip("/") for n in tf.io.gfile.listdir(directory)}
    for name in names:
        found: Any = _FILE.fullmatch(name)
        if found and f"{found['checkpoint']}.index" not in names:
            user_files.remove_own_file(os.path.join(directory, name))
