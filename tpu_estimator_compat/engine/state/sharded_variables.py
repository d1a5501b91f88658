"""Variables with a shard on every machine, such as embedding tables, and their checkpoints.

A checkpoint holds each variable whole, under its name. To save, the chief writes its own rows, then
the rows that the other machines send in pieces. To restore, the chief reads each machine's rows and
sends them. So no machine ever holds a whole variable, and only the chief reads and writes files.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.cluster.group import CHIEF
from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.engine.files import removal, user_files
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.state.shards import Shard
from tpu_estimator_compat.engine.state.variables import VariableStore, components

_FILE = 1 << 27  # bytes of other machines' rows in one file


class ShardedVariables:
    """The sharded variables of a training, on one of its machines.

    Args:
      variables: of the captured graph, with TF's slice info; the same on all machines.
      store: holds this machine's rows.
      ask: makes the other machines call `send_own`, whatever they are doing.
    """

    def __init__(
        self,
        variables: Sequence[tf.Variable],
        store: VariableStore,
        group: Workers,
        ask: Callable[[], None],
    ):
        self._store = store
        self._group = group
        self._ask = ask
        self._dtypes = [v.dtype for v in variables]
        self.names = [v.op.name for v in variables]
        infos = [v._get_save_slice_info() for v in variables]
        self._shards = [  # by machine
            [Shard.of_machine(i.full_name, i.full_shape, group.count, k) for i in infos]
            for k in range(group.count)
        ]

    @contextlib.contextmanager
    def completed(self, prefix: str, names: Collection[str]) -> Iterator[str]:
        """Yields the path to which the chief saves its rows, then merges all machines' rows.

        On exit, the checkpoint at `prefix` has the variables `names`, each whole. Only the chief
        calls this.
        """
        asked = [i for i, name in enumerate(self.names) if name in names]
        if not asked:
            yield prefix
            return
        folder = f"{prefix}.shards-{user_files.token()}"
        own = os.path.join(folder, "0")
        tf.io.gfile.mkdir(folder)  # not makedirs: a missing parent fails the save
        try:
            yield own
            self._ask()
            with eager.eager_mode(), tf.device("/cpu:0"):
                mask = tf.constant([i in asked for i in range(len(self.names))], tf.int32)
                self._group.from_chief_now(mask, "sharded variables that are saved")
                parts = [own, *self._write_others(folder, asked)]
                tf.raw_ops.MergeV2Checkpoints(
                    checkpoint_prefixes=parts, destination_prefix=prefix, delete_old_dirs=False
                )
        finally:
            removal.remove(folder, "unfinished")

    def _write_others(self, folder: str, asked: Sequence[int]) -> Iterator[str]:
        """Writes other machines' rows, about `_FILE` bytes to a file; yields the prefixes."""
        files = (os.path.join(folder, str(number)) for number in itertools.count(1))
        held: dict[Shard, tf.Tensor] = {}
        for machine in range(1, self._group.count):
            for i in asked:
                for piece in self._pieces(machine, i):
                    spec = self._spec(piece, i)
                    held[piece] = self._group.receive(spec, _exchange(piece), machine)
                    if sum(map(_bytes, held.values())) >= _FILE:
                        yield _written(next(files), held)
                        held = {}
        if held:
            yield _written(next(files), held)

    def send_own(self) -> None:
        """Sends this machine's rows to the chief, which has asked for them."""
        with eager.eager_mode(), tf.device("/cpu:0"):
            mask = tf.zeros([len(self.names)], tf.int32)
            mask = self._group.from_chief_now(mask, "sharded variables that are saved")
            own = self._shards[self._group.index]
            for i in np.flatnonzero(mask.numpy()).tolist():
                for piece in self._pieces(self._group.index, i):
                    rows = tf.raw_ops.ResourceGather(
                        resource=self._live(i).handle,
                        indices=_indices(piece, own[i]),
                        dtype=self._dtypes[i],
                    )
                    self._group.send(rows, _exchange(piece), CHIEF)

    def check(self, path: str | None) -> None:
        """Raises ValueError where the checkpoint at `path` lacks a variable in its full shape."""
        if path is None:
            return
        shapes = tf.train.load_checkpoint(user_files.readable(path)).get_variable_to_shape_map()
        for shard in self._shards[CHIEF]:
            if tuple(shapes.get(shard.name, ())) != shard.shape:
                raise ValueError(
                    f"The checkpoint {path} has no {shard.name!r} of shape {list(shard.shape)}, "
                    "from which each machine reads its rows. On several machines, a saver must "
                    "keep embedding tables and their slots under their own names."
                )

    def take_restored(self, path: str | None) -> None:
        """Distributes the rows that the chief restored from `path`; all machines call this.

        On the chief, None says that nothing was restored: each machine has initialized its rows.
        """
        with eager.eager_mode(), tf.device("/cpu:0"):
            if not self._group.tell(int(path is not None), "restored sharded variables"):
                return
            for machine in range(1, self._group.count):
                for i, name in enumerate(self.names):
                    if self._group.is_chief:
                        self._send_restored(path or "", machine, i)
                    elif self._group.index == machine:
                        self._take(i)
                        self._store.host_wrote([name])

    def _send_restored(self, path: str, machine: int, i: int) -> None:
        whole = self._shards[machine][i]
        # In one call: to read a slice of a tensor saved in one piece, TensorFlow reads all of it.
        [rows] = tf.raw_ops.RestoreV2(
            prefix=user_files.readable(path),
            tensor_names=[whole.name],
            shape_and_slices=[whole.slice_info.spec],
            dtypes=[self._dtypes[i]],
        )
        for piece in self._pieces(machine, i):
            start = piece.first - whole.first
            part = rows[start : start + piece.rows]
            self._group.send(part, _exchange(piece), machine)

    def _take(self, i: int) -> None:
        own = self._shards[self._group.index][i]
        for piece in self._pieces(self._group.index, i):
            rows = self._group.receive(self._spec(piece, i), _exchange(piece), CHIEF)
            tf.raw_ops.ResourceScatterUpdate(
                resource=self._live(i).handle, indices=_indices(piece, own), updates=rows
            )

    def _live(self, i: int) -> tf.Variable:
        return components(self._store[self.names[i]])[0]

    def _pieces(self, machine: int, i: int) -> list[Shard]:
        shard = self._shards[machine][i]
        return shard.pieces(int(np.prod(shard.shape[1:])) * self._dtypes[i].size)

    def _spec(self, piece: Shard, i: int) -> tf.TensorSpec:
        return tf.TensorSpec(piece.own_shape, self._dtypes[i])


def _written(prefix: str, rows: Mapping[Shard, tf.Tensor]) -> str:
    """Writes pieces of variables to a file; returns `prefix`."""
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=[piece.name for piece in rows],
        shape_and_slices=[piece.slice_info.spec for piece in rows],
        tensors=list(rows.values()),
    )
    return prefix


def _bytes(rows: tf.Tensor) -> int:
    return int(rows.dtype.size * rows.shape.num_elements())


def _exchange(piece: Shard) -> str:
    return f"rows of {piece.name} from {piece.first}"


def _indices(piece: Shard, shard: Shard) -> tf.Tensor:
    start = piece.first - shard.first
    return tf.range(start, start + piece.rows, dtype=tf.int64)
