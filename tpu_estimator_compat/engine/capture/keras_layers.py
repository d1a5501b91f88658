"""Keras 3 layers in a model_fn's graph: names and saved variables as with Keras 2.

**Scopes.** Keras 3 opens a layer's scope twice for a call, to build the layer and to run it. In a
graph the second one gets another name, `dense_1` after `dense`, so that variables of the next
layer, `dense_1`, would be in `dense_1_1`, where no checkpoint of the original has them. Layers
without a `build` are first traced apart, and get their variables later, outside of all scopes.

**Random generators.** Layers such as Dropout keep a generator's state in a variable; in Keras 2
they had none. So here it is a local variable: no checkpoint has it, and it starts from its seed.

**Updates**, such as those of moving averages. A Keras 3 or tf_keras layer inside a model_fn assigns
to its variables, and train_op does not depend on those ops: Keras runs them anyway, and so do
steps. The TF1 layers (`tf.layers`) put theirs into UPDATE_OPS, for the user to run or not.
Optimizers of Keras 3, and the new ones of tf_keras, return no op for their updates either; those of
`tf_keras.optimizers.legacy` do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

import tensorflow as tf
from keras.src.backend.common.name_scope import current_path
from keras.src.backend.tensorflow import core

from tpu_estimator_compat.engine.capture.patches import Function, patched
from tpu_estimator_compat.engine.graph import graph_ops, sources


@contextlib.contextmanager
def one_scope_per_call() -> Iterator[None]:
    """A context in which a layer runs in the scope in which it was built."""
    built: dict[int, tuple[Any, str]] = {}

    def with_layer_scope(
        new_scope: Function, self: Any, name: str, caller: Any = None, **kwargs: Any
    ) -> None:
        new_scope(self, name, caller=caller, **kwargs)
        if caller is not None:
            self._tf_name_scope = _LayerScope(name, caller, built)

    def in_layer_scope(make_late: Function, variable: Any) -> None:
        with _scope_of(variable):
            make_late(variable)

    with (
        patched(core.name_scope, "__init__", with_layer_scope),
        patched(core.Variable, "_deferred_initialize", in_layer_scope),
    ):
        yield


@contextlib.contextmanager
def generators_outside_checkpoints() -> Iterator[None]:
    """A context in which random generators of the default graph have local variables as state."""

    def create(next_creator: Any, **kwargs: Any) -> tf.Variable:
        variable = next_creator(**kwargs)
        if kwargs.get("name") == _GENERATOR_STATE:
            _make_local(variable)
        return variable

    with tf.variable_creator_scope(create):
        yield


_GENERATOR_STATE = "seed_generator_state"


def _make_local(variable: tf.Variable) -> None:
    graph = variable.graph
    saved = graph.get_collection_ref(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
    saved[:] = [v for v in saved if v is not variable]
    graph.add_to_collection(tf.compat.v1.GraphKeys.LOCAL_VARIABLES, variable)


def _scope_of(variable: Any) -> contextlib.AbstractContextManager[Any]:
    """The scope of a variable's layer, below the current scope."""
    path = variable.path.rpartition("/")[0].removeprefix(current_path()).strip("/")
    opened = tf.compat.v1.get_default_graph().get_name_scope()
    scope = "/".join(part for part in (opened, path) if part)
    return tf.name_scope(f"{scope}/") if scope else contextlib.nullcontext()


class _LayerScope:
    """A layer's scope: every second entry reopens the scope of the entry before."""

    def __init__(self, name: str, layer: Any, built: dict[int, tuple[Any, str]]):
        self._name, self._layer, self._built = name, layer, built

    def __enter__(self) -> str:
        _, again = self._built.pop(id(self._layer), (None, None))
        self._scope = tf.name_scope(again or self._name)
        entered = self._scope.__enter__()
        if again is None:
            # The name ends with "/", which reopens the scope. The layer is kept, so that no other
            # one gets its id.
            self._built[id(self._layer)] = self._layer, entered
        return entered

    def __exit__(self, *error: Any) -> None:
        self._scope.__exit__(*error)


_HELD = (tf.Operation, tf.Tensor, tf.Variable, tf.IndexedSlices)
_WRITES = frozenset({"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"})


def implicit_updates(
    graph: tf.Graph, wanted: Collection[tf.Operation], fed: Collection[tf.Tensor]
) -> list[tf.Operation]:
    """Writes by Keras that `wanted` does not run, except initializers and UPDATE_OPS.

    Those of a functional model on its own Input are left out: they need a placeholder that is not
    in `fed`, nor a need of `wanted`.
    """
    collected = tf.nest.flatten(graph.get_collection(tf.compat.v1.GraphKeys.UPDATE_OPS))
    keys = (tf.compat.v1.GraphKeys.GLOBAL_VARIABLES, tf.compat.v1.GraphKeys.LOCAL_VARIABLES)
    variables = [variable for key in keys for variable in graph.get_collection(key)]
    held = [*collected, *(v.initializer for v in variables)]  # the user may collect anything
    known = [graph_ops.as_operation(x) for x in held if isinstance(x, _HELD)]
    writes = [op for op in graph.get_operations() if op.type in _WRITES]
    spoken_for = graph_ops.ancestors([*known, *wanted], ()) if writes else ()
    found = [op for op in writes if op not in spoken_for and _by_keras(op)]
    if not found:
        return []
    feeds = {graph_ops.key(tensor) for tensor in fed}
    needed = graph_ops.ancestors(wanted, feeds)
    others = {op for op in graph.get_operations() if op.type == "Placeholder"} - needed
    return [op for op in found if others.isdisjoint(graph_ops.ancestors([op], feeds))]


def _by_keras(op: tf.Operation) -> bool:
    # A variable's first initializer is not its `initializer` after `init_from_checkpoint`.
    if any(frame.name == "_init_from_args" for frame in op.traceback):
        return False
    return sources.is_by(op, sources.UPDATING_OF_KERAS)
