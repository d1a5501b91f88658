"""The rows of a variable that one machine holds, where no machine holds the whole."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

import tensorflow as tf

from tpu_estimator_compat.tf_internals import variable_scope

PIECE = 1 << 22  # bytes in one message


@dataclasses.dataclass(frozen=True)
class Shard:
    """Adjacent rows of a variable.

    Attributes:
      name: of the variable in checkpoints.
      shape: of the whole variable.
      first, rows: index of the first row, and the number of rows.
    """

    name: str
    shape: tuple[int, ...]
    first: int
    rows: int

    @classmethod
    def of_machine(cls, name: str, shape: Sequence[int], machines: int, index: int) -> Shard:
        """The rows of a machine by the "div" strategy: the first machines may have one more."""
        each, more = divmod(shape[0], machines)
        first = index * each + min(index, more)
        return cls(name, tuple(shape), first, each + (index < more))

    @property
    def own_shape(self) -> list[int]:
        return [self.rows, *self.shape[1:]]

    @property
    def slice_info(self) -> tf.Variable.SaveSliceInfo:
        offset = [self.first] + [0] * (len(self.shape) - 1)
        return tf.Variable.SaveSliceInfo(self.name, list(self.shape), offset, self.own_shape)

    def pieces(self, row_bytes: int) -> list[Shard]:
        """The same rows in shards of at most `PIECE` bytes, or one row."""
        most = max(1, PIECE // row_bytes)
        ends = range(self.first, self.first + self.rows, most)
        last = self.first + self.rows
        return [
            dataclasses.replace(self, first=first, rows=min(most, last - first)) for first in ends
        ]


def make_slice(variable: tf.Variable, shard: Shard) -> None:
    """Marks a variable as a slice for savers, and registers it under a slice's name.

    `init_from_checkpoint` finds slices by the names that `get_variable` gives with a partitioner.
    """
    variable._set_save_slice_info(shard.slice_info)
    known = variable_scope._get_default_variable_store()._vars
    known[f"{variable.op.name}/part_0"] = known.pop(variable.op.name)


@contextlib.contextmanager
def grouped(graph: tf.Graph) -> Iterator[None]:
    """Lists each slice twice in the graph's collections, so that TF's warm start sees a slice.

    A slice that is listed once would count as a whole variable, and be refused for its shape.
    """
    names = (tf.compat.v1.GraphKeys.GLOBAL_VARIABLES, tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
    before = {name: graph.get_collection(name) for name in names}
    for name, variables in before.items():
        infos = [(v, v._get_save_slice_info()) for v in variables]
        # A sole partition is the whole variable.
        twice = [v for v, info in infos if info and info.full_shape != info.var_shape]
        graph.get_collection_ref(name).extend(twice)
    try:
        yield
    finally:
        for name, variables in before.items():
            graph.get_collection_ref(name)[:] = variables
