"""The position of the input, saved beside a checkpoint, so that a restart continues bit for bit.

TensorFlow serialises the iterator: the position in every file, the content of shuffle and prefetch
buffers, and the state of seeded shuffles. (Its symbolic checkpoints hold no buffers, but were seen
to hang in TF 2.21 on a parallel interleave behind a shuffle.) The files are
`<checkpoint>.input-00000-of-00001.*`. They name the checkpoint, with the digest of its index, and
the input, by the kinds of its datasets, and the types and shapes of its elements.
"""

from __future__ import annotations

import contextlib
import hashlib
import os

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint.saving import appearing_at_once
from tpu_estimator_compat.engine.checkpoint.state import damaged
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.tf_internals import gen_dataset_ops

_IGNORE_STATEFUL, _FAIL_IF_STATEFUL = 1, 2  # tf.data's policies for ops with a state of their own
_NAME, _OF = "input_state", "of"


def write(iterator: tf.data.Iterator, checkpoint: str) -> None:
    """Writes the position of an iterator beside the complete `checkpoint`, a path without suffix.

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
        of = tf.constant([*_identity(checkpoint), _kinds(iterator)])
        with appearing_at_once(prefix(checkpoint)) as path:
            tf.raw_ops.SaveV2(
                prefix=path,
                tensor_names=[_NAME, _OF],
                shape_and_slices=["", ""],
                tensors=[state, of],
            )


def prefix(checkpoint: str) -> str:
    return f"{checkpoint}.input-00000-of-00001"


def _identity(checkpoint: str) -> list[str]:
    """The name of a checkpoint, and the digest of the file that knows its tensors, if it is one."""
    for path in (f"{checkpoint}.index", checkpoint):
        if tf.io.gfile.exists(path):
            with tf.io.gfile.GFile(path, "rb") as file:
                return [os.path.basename(checkpoint), hashlib.sha256(file.read()).hexdigest()]
    return [os.path.basename(checkpoint), ""]


def _kinds(iterator: tf.data.Iterator) -> str:
    """The kinds of datasets behind an iterator, the shapes of their constants, and its elements.

    TensorFlow's own fingerprint of a dataset differs now and then for the same input_fn.
    """
    kinds: list[str] = []
    with contextlib.suppress(tf.errors.OpError), eager.eager_mode():
        graph = tf.raw_ops.DatasetToGraphV2(
            input_dataset=iterator._dataset._variant_tensor, external_state_policy=_IGNORE_STATEFUL
        )
        nodes = tf.compat.v1.GraphDef.FromString(graph.numpy()).node
        shapes = {n.name: n.attr["value"].tensor.tensor_shape for n in nodes if n.op == "Const"}
        for node in (n for n in nodes if "Dataset" in n.op):
            taken = [[d.size for d in shapes[name].dim] for name in node.input if name in shapes]
            kinds.append(f"{node.op}{taken}")
    return f"{sorted(kinds)} {iterator.element_spec}"


def restore(iterator: tf.data.Iterator, checkpoint: str) -> str | None:
    """Moves `iterator` to the position saved beside `checkpoint`; returns why not, in words.

    Raises DataLossError for a damaged position, ValueError for one of another input.
    """
    path = prefix(checkpoint)
    if not tf.io.gfile.exists(f"{path}.index"):
        return f"there is no position of the input beside {checkpoint}"
    with eager.eager_mode():
        try:
            reader = tf.train.load_checkpoint(user_files.readable(path))
            if not reader.has_tensor(_OF):
                return f"{path} does not say of which checkpoint it is"
            state, of = tf.raw_ops.RestoreV2(
                prefix=user_files.readable(path),
                tensor_names=[_NAME, _OF],
                shape_and_slices=["", ""],
                dtypes=[tf.variant, tf.string],
            )
        except tf.errors.OpError as error:
            message = f"Could not read the input's position in {path}: {error.message}"
            raise damaged(error, message) from None
        *identity, known = map(tf.compat.as_str, of.numpy())
        if identity != _identity(checkpoint):
            return f"the position in {path} was saved with another checkpoint than {checkpoint}"
        try:
            if known != _kinds(iterator):
                raise tf.errors.InvalidArgumentError(None, None, "it is of another dataset.")
            gen_dataset_ops.deserialize_iterator(iterator._iterator_resource, state)
        except tf.errors.OpError as error:
            raise ValueError(
                f"The input's position in {path} does not fit this input_fn: {error.message} "
                "Go on with the input_fn that wrote it, or set save_input_state=False to start "
                "the input anew."
            ) from None
    return None


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
