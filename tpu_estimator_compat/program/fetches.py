"""What a session's caller asks for, taken apart once per structure.

A training loop asks for the same fetches in every run, in new dicts and lists; TensorFlow's handler
of them takes longer to make than to use.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.client.session import _FetchHandler

_LEAVES = (tf.Tensor, tf.Operation, tf.Variable)
_MOST = 64  # whoever asks for something new in each run gains nothing


class FetchHandlers:
    """TensorFlow's fetch handlers of one graph, kept for structures that come again.

    Args:
      graph: the graph of the fetches.
    """

    def __init__(self, graph: tf.Graph):
        self._graph = graph
        self._kept: dict[Any, tuple[_FetchHandler, list[Any]]] = {}

    def __call__(self, fetches: Any, feeds: Any) -> _FetchHandler:
        """The handler of `fetches`.

        Args:
          fetches: a tensor, operation, name, or nested structure of these.
          feeds: values by reference of the tensors that are fed.

        Raises:
          TypeError, ValueError: `fetches` holds something else.
        """
        leaves: list[Any] = []
        shape = None if feeds else _shape(fetches, leaves)
        if shape is None:
            return _FetchHandler(self._graph, fetches, feeds)
        if shape not in self._kept:
            if len(self._kept) == _MOST:
                self._kept.clear()
            # The leaves are kept as well: the identities in `shape` would be given out again.
            self._kept[shape] = _FetchHandler(self._graph, fetches, {}), leaves
        return self._kept[shape][0]


def _shape(fetches: Any, leaves: list[Any]) -> Any:
    """Structure and leaves as something hashable; None if that cannot say all about `fetches`."""
    kind = type(fetches)
    if kind is str:
        return fetches
    if isinstance(fetches, _LEAVES):
        leaves.append(fetches)
        return id(fetches)
    if kind is dict:
        parts = [(key, _shape(value, leaves)) for key, value in fetches.items()]
        unknown = any(part is None for _, part in parts)
    elif isinstance(fetches, (list, tuple)):
        parts = [_shape(value, leaves) for value in fetches]
        unknown = any(part is None for part in parts)
    else:
        return None
    return None if unknown else (kind, *parts)
