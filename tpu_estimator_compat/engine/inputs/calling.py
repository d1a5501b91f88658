"""Calls an input_fn in the graph in which model_fn is called next, and describes its elements.

An input_fn may return a Dataset, tensors of an iterator, or other tensors; it may make variables,
hash tables, queues and random ops. As in the original, all of it is part of one graph: the ops
upstream of the element's tensors belong to the input, the others to the step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Hashable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph import graph_def, graph_ops
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_function import HostFunction
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram
from tpu_estimator_compat.tf_internals import dataset_ops, iterator_ops

_PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
_QUEUES = frozenset(
    {"FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2", "RandomShuffleQueueV2"}
)
_STATE = frozenset(
    {
        "VarHandleOp",
        "MutableHashTableV2",
        "MutableHashTableOfTensorsV2",
        "MutableDenseHashTableV2",
    }
)


class CalledInput:
    """The result of one input_fn call, made in `graph`, whose live state is in `store`."""

    def __init__(self, result: Any, graph: tf.Graph, store: VariableStore):
        self.result, self.graph, self.store = result, graph, store
        self.initializable: tf.compat.v1.data.Iterator | None = None
        self._structure = None if self.is_dataset else _of_tensors(result, graph)

    @property
    def is_dataset(self) -> bool:
        return isinstance(self.result, tf.data.Dataset)

    @functools.cached_property
    def element_spec(self) -> Any:
        if self.is_dataset:
            return self.result.element_spec
        return tf.nest.map_structure(tf.type_spec_from_value, self._structure)

    @property
    def is_empty(self) -> bool:
        """Whether elements have no tensors: model_fn makes its own data."""
        return not self.is_dataset and not self._tensors

    @property
    def runs_python(self) -> bool:
        """Whether Python code, such as a generator or a queue runner, makes elements."""
        return self._has(_PYTHON_OPS) or (not self.is_dataset and self._has(_QUEUES))

    @property
    def has_state(self) -> bool:
        """Whether elements depend on variables, or on tables that can be written to."""
        return self._has(_STATE)

    @property
    def variables(self) -> set[str]:
        return {op.name for op in self._ops if graph_ops.is_variable_handle(op)}

    @property
    def has_end(self) -> bool:
        """Whether the features may end: they come from a Dataset or a queue."""
        if self.is_dataset or self.graph.get_collection(tf.compat.v1.GraphKeys.QUEUE_RUNNERS):
            return True
        features: Any = self._structure
        if type(features) is tuple:  # with labels
            features = features[0]
        flat = tf.nest.flatten(features, expand_composites=True)
        return any(t.op.type == "IteratorGetNext" for t in flat)

    def _has(self, types: frozenset[str]) -> bool:
        return graph_def.has_types(self.graph, self._ops, types)

    @functools.cached_property
    def _ops(self) -> set[tf.Operation]:
        return graph_ops.ancestors([t.op for t in self.own(self._tensors)], ())

    def own(self, tensors: list[tf.Tensor]) -> list[tf.Tensor]:
        """Those of this graph; model_fn may leave others unused, and fails if it uses them."""
        return [t for t in tensors if t.graph is self.graph]

    @functools.cached_property
    def _tensors(self) -> list[tf.Tensor]:
        """The tensors of an element, flat, or a Dataset's variant."""
        if self.is_dataset:
            with self.graph.as_default():
                return [self.result._variant_tensor]
        return tf.nest.flatten(self._structure, expand_composites=True)

    def element(self) -> Any:
        """The element: for a Dataset, `get_next()` of an initializable iterator, as in TF1."""
        if self.is_dataset:
            self.initializable = tf.compat.v1.data.make_initializable_iterator(self.result)
            return self.initializable.get_next()
        return self._structure

    def dataset(self) -> tf.data.Dataset:
        """A dataset of the elements; called where the variables of the graph have values."""
        if self.is_dataset:
            return self._of_variant()
        return self._of_tensors_run_again()

    def iterator(self, dataset: tf.data.Dataset) -> Iterator:
        """An iterator over a dataset: the graph's own iterator, if `element` made one.

        Code that saves or initializes the graph's iterator then acts on the iterator of the steps.
        """
        if self.initializable is None:
            return iter(dataset)
        made = self.initializable._iterator_resource.op
        self.store.prepare([made])
        handle = self.store.read(made.name, dataset)
        iterator = iterator_ops.OwnedIterator(
            components=[handle], element_spec=dataset.element_spec
        )
        iterator._dataset = dataset  # as in other iterators
        return iterator

    def _of_variant(self) -> tf.data.Dataset:
        [value] = HostFunction(self.graph, self.store, self._tensors, [], [])([])
        with eager.eager_mode():
            # The dataset's options are part of the variant.
            dataset = dataset_ops._VariantDataset(value, self.element_spec)
        dataset._store = self.store  # keeps the tables of its functions alive
        return self._without_prefetch(dataset)

    def _of_tensors_run_again(self) -> tf.data.Dataset:
        """A dataset that evaluates the element's tensors anew for each element."""
        if len(self.own(self._tensors)) < len(self._tensors):
            given = f"{self.result}, of which some are from another graph. Make them in input_fn."
            raise ValueError(f"Tensors must be from the same graph as input_fn's, given: {given}")
        program = ReplicaProgram(self.graph, [], self._tensors)
        self.store.prepare(program.handles, replicated=False)

        @tf.autograph.experimental.do_not_convert
        def again(_: tf.Tensor) -> Any:
            values = program([], self.store.host_handle)
            return tf.nest.pack_sequence_as(self._structure, values, expand_composites=True)

        with eager.eager_mode(), tf.device("/cpu:0"):
            endless = tf.data.Dataset.from_tensors(0).repeat()
            # A map whose function meets OutOfRange ends instead of failing.
            return self._without_prefetch(dataset_ops.DatasetV1Adapter(endless).map(again))

    def _without_prefetch(self, elements: tf.data.Dataset) -> tf.data.Dataset:
        """Keeps tf.data from prefetching by itself where elements depend on variables."""
        if not self.has_state:
            return elements
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        with eager.eager_mode():
            return elements.with_options(options)


def call_input_fn(call: Callable[[], Any], store: VariableStore) -> CalledInput:
    """Calls an input_fn by `call`, in the default graph on the CPU, and checks the result."""
    graph = tf.compat.v1.get_default_graph()
    with tf.device("/cpu:0"):
        with graph_building.foreign_tensors_explained("input_fn"):
            result = call()
        _check(result, graph)
        return CalledInput(result, graph, store)


def check_is_dataset(called: CalledInput, demand: str) -> None:
    """Raises TypeError, beginning with `demand`, where input_fn returned tensors."""
    if not called.is_dataset:
        raise TypeError(f"{demand} Got {called.result}.")


def check_apart(called: CalledInput, *, on_tpu: bool) -> None:
    """Refuses input that depends on variables of the devices, where the host makes the input.

    Call it after model_fn. TensorFlow's TPUs hold all variables; JAX's devices hold trainable
    variables and the global step.
    """
    graph, names = called.graph, called.variables
    if not on_tpu:
        changed = graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
        changed = [tf.compat.v1.train.get_global_step(graph), *changed]
        names &= {variable.op.name for variable in changed if variable is not None}
    if names:
        raise NotImplementedError(
            f"input_fn reads {', '.join(sorted(names))}. Such variables are on the devices; the "
            "host, which makes the input, does not see their updates. Take the number of an "
            "element from Dataset.enumerate(), or train with use_tpu=False and without a `runtime`."
        )


def warn_if_endless(called: CalledInput) -> None:
    """Warns of a prediction whose data cannot end: they come from neither a Dataset nor a queue."""
    if not called.has_end:
        logging.warning(
            "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means predict "
            "yields forever. This is probably a mistake."
        )


def warn_of_queues(called: CalledInput) -> None:
    if called.graph.get_collection(tf.compat.v1.GraphKeys.QUEUE_RUNNERS):
        logging.warning(
            "Input pipeline contains one or more QueueRunners. It could be slow and not scalable. "
            "Please consider converting your input pipeline to use `tf.data` instead (see "
            "https://www.tensorflow.org/guide/datasets for instructions."
        )


def _check(result: Any, graph: tf.Graph) -> None:
    if result is None:
        logging.warning(
            "input_fn returned None: model_fn is called with features=None. If that is not meant, "
            "return a tf.data.Dataset, features, or (features, labels)."
        )
    if isinstance(result, tf.compat.v1.data.Iterator):
        raise TypeError(f"input_fn returned an iterator, {result!r}. Return its get_next().")
    if isinstance(result, (str, bytes, Generator)) or callable(result):
        raise TypeError(
            f"input_fn returned {type(result).__name__}: {result!r}. Return a tf.data.Dataset, "
            "features (a tensor or a dict of them), or (features, labels)."
        )
    if isinstance(result, tf.data.Dataset) and _graph_of(result) is not graph:
        raise ValueError(
            f"The graph {graph} of the iterator is different from the graph {result._graph} the "
            f"dataset: {result._variant_tensor} was created in. If you are using the Estimator "
            "API, make sure that no part of the dataset returned by the `input_fn` function is "
            "defined outside the `input_fn` function. Otherwise, make sure that the dataset is "
            "created in the same graph as the iterator."
        )
    if isinstance(result, (list, tuple)) and not hasattr(result, "_fields") and len(result) != 2:
        raise ValueError(
            "input_fn should return (features, labels) as a len 2 tuple. "
            f"Got {len(result)} elements."
        )


def _graph_of(dataset: tf.data.Dataset) -> tf.Graph | None:
    variant = dataset._variant_tensor
    return None if hasattr(variant, "numpy") else variant.graph


def _of_tensors(result: Any, graph: tf.Graph) -> Any:
    """input_fn's result as a structure of tensors, with () for None and keys that can be sorted."""
    if result is None:
        return (), ()
    is_pair = isinstance(result, (list, tuple)) and not hasattr(result, "_fields")
    parts = [_with_sortable_keys(part) for part in (result if is_pair else [result])]
    with graph.as_default():
        parts = tf.nest.map_structure(_as_tensor, parts)
    return tuple(parts) if is_pair else parts[0]


def _as_tensor(value: Any) -> Any:
    if value is None:
        return ()
    if isinstance(value, tf.RaggedTensor) or (hasattr(value, "dtype") and hasattr(value, "graph")):
        return value
    try:
        return tf.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"input_fn returned {value!r} among its features or labels, which is no tensor: {error}"
        ) from None


class _Key(str):
    """A sortable replacement of a key that cannot be compared with other keys.

    TensorFlow sorts the keys of a dict that goes through a dataset. Tensors that an input_fn
    returned did not go through one in the original, so model_fn must get them by their own keys.
    """

    original: Hashable


def _with_sortable_keys(features: Any) -> Any:
    """`features` with keys that can be sorted; unchanged where they can be already."""
    if not isinstance(features, dict):
        return features
    try:
        sorted(features)
    except TypeError:
        return {_key(key): value for key, value in features.items()}
    return features


def with_original_keys(features: Any) -> Any:
    """`features` with the keys that input_fn gave them."""
    if not isinstance(features, dict) or not any(isinstance(key, _Key) for key in features):
        return features
    return {key.original: value for key, value in features.items()}


def _key(key: Hashable) -> _Key:
    made = _Key(f"{type(key).__name__} {key!r}")
    made.original = key
    return made
