"""Calls an input_fn in a TF1 graph of its own and turns what it returns into a dataset.

An input_fn may return a Dataset, tensors of a one-shot or initializable iterator, or bare tensors;
it may make hash tables and random ops. All of that is legal only in a graph, so it gets one. A
Dataset comes back as its variant tensor, evaluated once; tensors become a dataset that runs the
pruned graph again for every element, or where queues are, a session on all of it; where they are
made of placeholders, one of what hooks feed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.python.data.ops import dataset_ops

from tpu_estimator_compat.inputs import feature_keys, fed, queues
from tpu_estimator_compat.program import graph_building, graph_def
from tpu_estimator_compat.program.replica_program import ReplicaProgram
from tpu_estimator_compat.program.session import GraphSession, HostFunction
from tpu_estimator_compat.program.variables import VariableStore
from tpu_estimator_compat.runtime import eager


class Featureless(NamedTuple):
    """An element of an input that holds nothing: model_fn makes its own.

    Attributes:
      features: what input_fn returned for features: an empty dict; () stands for None.
      tick: what moves through the pipeline instead, a scalar.
    """

    features: Any
    tick: Any


_PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})


def call_input_fn(call: Callable[[], Any], *, seed: int | None) -> tf.data.Dataset:
    """The dataset that an input_fn stands for.

    Args:
      call: calls the user's input_fn with its arguments.
      seed: the graph-level random seed, or None.

    Returns:
      A dataset of features, or of (features, labels). It keeps the graph and its tables alive.

    Raises:
      ValueError: input_fn returned a tuple of another length than two, or a Dataset that was made
        outside of it.
      TypeError: it returned a text, a function, an iterator or other things that are no tensors.
    """
    graph = tf.Graph()
    store = VariableStore(tf.distribute.get_strategy())
    with graph_building.capture_semantics(), graph.as_default(), tf.device("/cpu:0"):
        tf.compat.v1.set_random_seed(seed)
        with graph_building.foreign_tensors_explained("input_fn"):
            result = call()
        _check(result, graph)
        session = GraphSession(graph, store)
        initializers = [
            tf.compat.v1.global_variables_initializer(),
            tf.compat.v1.local_variables_initializer(),
            tf.compat.v1.tables_initializer(),
        ]
        if wanted := [op for op in initializers if op.control_inputs]:
            session.run(wanted)
    if isinstance(result, tf.data.Dataset):
        dataset = _from_dataset(result, graph, store)
    else:
        dataset = _from_tensors(result, graph, store)
    dataset._legacy_source = (session, result)  # what the dataset refers to must outlive it
    return dataset


def check_is_dataset(dataset: tf.data.Dataset, demand: str) -> None:
    """Refuses tensors where TPU execution wants a Dataset.

    Args:
      dataset: what `call_input_fn` gave.
      demand: what to say then.

    Raises:
      TypeError: input_fn returned tensors.
    """
    _, result = dataset._legacy_source
    if not isinstance(result, tf.data.Dataset):
        raise TypeError(f"{demand} Got {result}.")


def warn_if_endless(dataset: tf.data.Dataset) -> None:
    """Warns of a prediction that no end of data can end: its features come from no Dataset."""
    session, result = dataset._legacy_source
    if isinstance(result, tf.data.Dataset) or queues.runners(session.graph):
        return
    features = result[0] if isinstance(result, (list, tuple)) else result
    tensors = [t for t in tf.nest.flatten(features) if isinstance(t, tf.Tensor)]
    if not any(t.op.type == "IteratorGetNext" for t in tensors):
        logging.warning(
            "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means predict "
            "yields forever. This is probably a mistake."
        )


def warn_of_queues(dataset: tf.data.Dataset) -> None:
    """Warns of an input that queue runners fill."""
    session, _ = dataset._legacy_source
    if queues.are_in(session.graph):
        logging.warning(
            "Input pipeline contains one or more QueueRunners. It could be slow and not scalable. "
            "Please consider converting your input pipeline to use `tf.data` instead (see "
            "https://www.tensorflow.org/guide/datasets for instructions."
        )


def runs_python(dataset: tf.data.Dataset) -> bool:
    """Whether Python code, such as a generator, makes elements of what `call_input_fn` gave."""
    session = session_of(dataset)
    if session is None:
        return False
    if reruns_graph(dataset) and queues.are_in(session.graph):
        return True
    return not graph_def.op_types(session.graph).isdisjoint(_PYTHON_OPS)


def session_of(dataset: tf.data.Dataset) -> GraphSession | None:
    """The session of the graph in which the input_fn ran; None if `call_input_fn` did not."""
    source = getattr(dataset, "_legacy_source", None)
    return source and source[0]


def fed_input_of(dataset: tf.data.Dataset) -> fed.FedInput | None:
    """What hooks feed of what `call_input_fn` gave; None for nothing."""
    return getattr(dataset, "_legacy_fed", None)


def tensor_names(dataset: tf.data.Dataset) -> list[str]:
    """What the tensors of an element are called in a graph that input_fn and model_fn share.

    Returns:
      A name such as `IteratorGetNext:1` for each flat tensor; none where they are not known.
    """
    source = getattr(dataset, "_legacy_source", None)
    if source is None:
        return []
    if not isinstance(source[1], tf.data.Dataset):
        return getattr(dataset, "_legacy_names", [])
    specs = tf.nest.flatten(dataset.element_spec)
    if not all(isinstance(spec, tf.TensorSpec) for spec in specs):
        return []  # an iterator gives a composite as one tensor, which is taken apart
    return [f"IteratorGetNext:{i}" for i in range(len(specs))]


def reruns_graph(dataset: tf.data.Dataset) -> bool:
    """Whether every element is made by running a graph again: input_fn returned tensors."""
    source = getattr(dataset, "_legacy_source", None)
    return source is not None and not isinstance(source[1], tf.data.Dataset)


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
            f"The dataset {result!r} was created in another graph. If you are using the Estimator "
            "API, make sure that no part of the dataset returned by the `input_fn` function is "
            "defined outside the `input_fn` function."
        )
    if isinstance(result, (list, tuple)) and not hasattr(result, "_fields") and len(result) != 2:
        raise ValueError(
            "input_fn should return (features, labels) as a len 2 tuple. "
            f"Got {len(result)} elements."
        )


def _graph_of(dataset: tf.data.Dataset) -> tf.Graph | None:
    """The graph that a dataset was made in; None for one that was made eagerly."""
    variant = dataset._variant_tensor
    return None if hasattr(variant, "numpy") else variant.graph


def _from_dataset(
    dataset: tf.data.Dataset, graph: tf.Graph, store: VariableStore
) -> tf.data.Dataset:
    spec = dataset.element_spec
    with graph.as_default():
        variant = dataset._variant_tensor
    [value] = HostFunction(graph, store, [variant], [], [])([])
    with eager.eager_mode():
        # The dataset's options are part of the variant.
        return dataset_ops._VariantDataset(value, spec)


def _from_tensors(result: Any, graph: tf.Graph, store: VariableStore) -> tf.data.Dataset:
    element = tuple(result) if isinstance(result, list) else result
    if isinstance(element, tuple) and len(element) == 2 and element[1] is None:
        # A tuple alone would be taken for features and labels.
        element = (element[0], ()) if isinstance(element[0], (list, tuple)) else element[0]
    if isinstance(element, tuple) and len(element) == 2:
        # No features beside labels: an empty tuple goes through a dataset, None does not.
        without = element[0] is None and element[1] is not None
        element = (() if without else feature_keys.sortable(element[0]), element[1])
    else:
        element = feature_keys.sortable(element)
    if all(part is None for part in tf.nest.flatten(element)):
        features = element[0] if isinstance(element, tuple) else element
        features = () if features is None else features
        with eager.eager_mode(), tf.device("/cpu:0"):
            ticks = tf.data.Dataset.from_tensors(0).repeat()
            return dataset_ops.DatasetV1Adapter(ticks).map(
                tf.autograph.experimental.do_not_convert(lambda tick: Featureless(features, tick))
            )
    with graph.as_default():
        element = tf.nest.map_structure(
            lambda t: t if hasattr(t, "dtype") and hasattr(t, "graph") else _as_tensor(t), element
        )
    tensors = tf.nest.flatten(element, expand_composites=True)
    dataset = _of_tensors(tensors, element, graph, store)
    dataset._legacy_names = [tensor.name for tensor in tensors]
    return dataset


def _of_tensors(
    tensors: list[tf.Tensor], element: Any, graph: tf.Graph, store: VariableStore
) -> tf.data.Dataset:
    """A dataset of what the tensors of an element are, each time that they are run."""
    if queues.are_in(graph):
        return _packed(queues.dataset(graph, tensors), element)
    if fed.are_fed(tensors):
        source = fed.FedInput(GraphSession(graph, store), tensors)
        dataset = _packed(source.dataset(), element)
        dataset._legacy_fed = source
        return dataset
    program = ReplicaProgram(graph, [], tensors)
    store.prepare(program.handles, replicated=False)

    @tf.autograph.experimental.do_not_convert
    def again(_) -> Any:
        values = program([], store.host_handle)
        return tf.nest.pack_sequence_as(element, values, expand_composites=True)

    with eager.eager_mode(), tf.device("/cpu:0"):
        endless = tf.data.Dataset.from_tensors(0).repeat()
        # A map whose function reaches the end of its own data ends, instead of failing.
        return dataset_ops.DatasetV1Adapter(endless).map(again)


def _packed(dataset: tf.data.Dataset, structure: Any) -> tf.data.Dataset:
    """A dataset of tuples of tensors as one of elements of a structure."""

    @tf.autograph.experimental.do_not_convert
    def pack(*values: tf.Tensor) -> Any:
        return tf.nest.pack_sequence_as(structure, values, expand_composites=True)

    with eager.eager_mode(), tf.device("/cpu:0"):
        return dataset_ops.DatasetV1Adapter(dataset).map(pack)


def _as_tensor(value: Any) -> tf.Tensor:
    if isinstance(value, (tf.SparseTensor, tf.RaggedTensor)):
        return value
    try:
        return tf.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"input_fn returned {value!r} among its features or labels, which is no tensor: {error}"
        ) from None
