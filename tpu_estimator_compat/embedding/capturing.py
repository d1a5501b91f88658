"""Tables in a captured graph: activations for model_fn, lookups before a step, updates after it.

model_fn is called between `enter` and `leave`. `enter` takes ids out of the features and puts
placeholders of activations in their places; `leave` makes the variables, which feature columns name
only once model_fn has used them, and the lookups that the placeholders stand for. `updates` builds
the host's share of a training step.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.python.tpu import feature_column as tpu_columns
from tensorflow.python.tpu import feature_column_v2 as tpu_columns_v2

from tpu_estimator_compat.embedding import lookup, optimizers
from tpu_estimator_compat.embedding.interception import Interception
from tpu_estimator_compat.embedding.lookup import Ids, Occurrences
from tpu_estimator_compat.embedding.resolution import Embedding, Table
from tpu_estimator_compat.program.graph_ops import Key, key
from tpu_estimator_compat.program.host_placeholders import HostPlaceholders
from tpu_estimator_compat.program.step_plan import Lookups
from tpu_estimator_compat.spec import ModeKeys


@dataclasses.dataclass(frozen=True)
class _Input:
    """What input_fn gave for one feature.

    Attributes:
      ids: the feature.
      weights: of its ids; None for 1.
      activation: the placeholder of what the table holds for them.
    """

    ids: Ids
    weights: tf.SparseTensor | None
    activation: tf.Tensor


class CapturedTables:
    """The tables of one captured graph.

    Args:
      embedding: the tables and their features.
      mode: a `ModeKeys` value.
      batch_size: rows of the features of one replica, where shapes must be static; else None.

    Raises:
      ValueError: a table that is to be trained has no optimizer.
    """

    def __init__(self, embedding: Embedding, mode: str, batch_size: int | None):
        self._embedding = embedding
        self._trains = mode == ModeKeys.TRAIN and bool(embedding.tables)
        self._batch_size = batch_size
        if self._trains:
            embedding.check_optimizers()
        self._inputs: dict[str, _Input] = {}
        self._found: dict[str, Occurrences] = {}
        self._tables: dict[str, tf.Variable] = {}
        self._slots: dict[str, list[tf.Variable]] = {}
        self._tensors: dict[Key, tuple[tf.Tensor, tf.Tensor]] = {}
        self._interception: Interception | None = None

    @property
    def lookups(self) -> Lookups:
        """What the host looks up before a step."""
        results = [t for found in self._found.values() for t in _results(found)]
        return Lookups(self._tensors, results if self._trains else ())

    @property
    def variables(self) -> list[tf.Variable]:
        """Tables and slots; empty before `leave`."""
        return [*self._tables.values(), *(v for slots in self._slots.values() for v in slots)]

    def enter(self, features: Any) -> Any:
        """The features as model_fn is to have them.

        Args:
          features: a dict with the ids of all features of tables.

        Returns:
          A copy in which an activation, float32 of shape [batch, dimension] or
          [batch, max_sequence_length, dimension], stands for the ids of each feature. Weights are
          left out; for a feature of sequences their lengths are added.

        Raises:
          TypeError: the features are no dict.
          ValueError: a feature or its weights are missing, or of the wrong kind.
        """
        if not isinstance(features, dict):
            raise TypeError(
                "With embedding_config_spec, the features of input_fn must be a dict that has the "
                f"ids of {sorted(self._embedding.features)}. Got {features!r}."
            )
        features = copy.copy(features)
        with tf.name_scope("tpu_embedding"):
            for name in self._embedding.tables:
                for feature in self._embedding.tables[name].features:
                    self._take(features, feature)
            activations = {name: given.activation for name, given in self._inputs.items()}
            if self._trains:
                self._interception = Interception()
                activations = self._interception.hooked(activations)
            features.update(activations)
            for column in self._embedding.tensor_core_columns:
                self._pad(features, column)
        return features

    def _take(self, features: dict[str, Any], name: str) -> None:
        """Takes the ids and weights of a feature out of `features`."""
        config = self._embedding.features[name]
        ids = _ids_of(features, name)
        lookup.check_rank(config.table_id, name, config, ids)
        weights = _weights_of(features, config.weight_key, ids, name)
        batch = ids.shape[0] or self._batch_size
        shape = [batch, self._embedding.tables[config.table_id].config.dimension]
        if longest := config.max_sequence_length:
            shape.insert(1, longest)
            lengths = lookup.sequence_length(ids, longest)
            name_of = tpu_columns.get_sequence_length_feature_key_name_from_feature_key_name
            features[name_of(name)] = self._fed(lengths, [batch])
        activation = tf.compat.v1.placeholder(tf.float32, shape, name="activation")
        self._inputs[name] = _Input(ids, weights, activation)

    def _pad(self, features: dict[str, Any], column: Any) -> None:
        """Ids of a column whose table is model_fn's own: of static shape, with a mask."""
        name = column.categorical_column.key
        ids = _ids_of(features, name)
        width = column._tensor_core_shape[1]
        if not isinstance(ids, tf.SparseTensor):
            ids = tf.sparse.from_dense(ids)
        values, mask = tpu_columns_v2.pad_sparse_embedding_lookup_indices(ids, width)
        mask_name = name + tpu_columns_v2._TENSOR_CORE_MASK_KEY_SUFFIX
        if mask_name in features:
            raise ValueError(f"Mask key {mask_name} for Tensor Core embedding is already in use.")
        shape = [ids.shape[0] or self._batch_size, width]
        features[name] = self._fed(values, shape)
        features[mask_name] = self._fed(mask, shape)

    def _fed(self, tensor: tf.Tensor, shape: list[int | None]) -> tf.Tensor:
        """A placeholder of the replicas' share for what the host computes."""
        placeholder = tf.compat.v1.placeholder(tensor.dtype, shape, name="looked_up")
        self._tensors[key(placeholder)] = (placeholder, tensor)
        return placeholder

    def leave(self) -> None:
        """Makes variables and lookups; model_fn has been called.

        Raises:
          RuntimeError: model_fn has not used the feature columns of a table.
        """
        if self._interception is not None:
            self._interception.hide()
        names = self._variable_names()
        for name, table in self._embedding.tables.items():
            self._make_variables(table, names[name])
        with tf.name_scope("tpu_embedding_lookup"):
            for name, given in self._inputs.items():
                self._look_up(name, given)

    def _variable_names(self) -> dict[str, str]:
        """The tables' variables: as an ordinary column would name them, or as the tables."""
        graph = tf.compat.v1.get_default_graph()
        scopes = graph.get_collection_ref(tpu_columns._TPU_FC_TO_SCOPE)
        used = scopes[0] if scopes else {}
        names = {}
        for name, table in self._embedding.tables.items():
            if table.column_key is None:
                names[name] = name
            elif table.column_key in used:
                scope, variable = used[table.column_key]
                names[name] = f"{scope}/{variable}" if scope else variable
            else:
                raise RuntimeError(
                    f"model_fn did not use the feature column of the table {name}, which gives its "
                    "variable a name. Make sure that the feature columns passed to TPUEstimator's "
                    "embedding_config_spec are used in model_fn, or leave this one out."
                )
        del scopes[:]  # a collection that no MetaGraph can hold
        return names

    def _make_variables(self, table: Table, variable_name: str) -> None:
        shape = [table.config.vocabulary_size, table.config.dimension]
        # Those of an ordinary column are trainable, too: warm starts go by that.
        self._tables[table.name] = _variable(
            variable_name, shape, table.config.initializer, trainable=True
        )
        if not self._trains:
            return
        assert table.parameters is not None  # checked when this was made
        optimizer = optimizers.OPTIMIZERS[type(table.parameters)]
        self._slots[table.name] = [
            _variable(
                f"{variable_name}/{slot.suffix}",
                shape,
                _filled_with(slot.initial(table.parameters)),
                trainable=False,
            )
            for slot in optimizer.slots
        ]

    def _look_up(self, name: str, given: _Input) -> None:
        config = self._embedding.features[name]
        table = self._embedding.tables[config.table_id]
        found = lookup.occurrences(table.name, table.config, name, config, given.ids, given.weights)
        # TensorFlow's error says "{{node ...}} indices[i] = id is not in [0, rows)". That costs a
        # step nothing; an assertion for each feature is seven operations in every step.
        error = f"Feature_{name}_has_ids_that_table_{table.name}_does_not_have"
        tensor = found.activation(self._tables[table.name], error)
        self._tensors[key(given.activation)] = (given.activation, tensor)
        self._found[name] = found

    def updates(self, host: HostPlaceholders) -> list[tf.Operation]:
        """Builds what updates the tables when the replicas have made a step.

        Args:
          host: makes the placeholders of the host's share.

        Returns:
          Operations of the host's share, one for each table; none where nothing is trained.
        """
        if self._interception is None:
            return []
        step = tf.compat.v1.train.get_global_step()
        gradients = self._gradients(step)
        rates = _Rates(step, host)
        with tf.name_scope("tpu_embedding_update"):
            return [
                self._update(table, gradients, rates.of(table), host)
                for table in self._embedding.tables.values()
            ]

    def _gradients(self, step: tf.Variable) -> dict[str, tf.Tensor]:
        """By feature the gradient of a replica's loss, multiplied as the spec wants it."""
        assert self._interception is not None
        found = dict(self._interception.gradients)
        missing = [name for name in self._inputs if name not in found]
        if missing:
            logging.warning(
                "The features %s have undefined gradients: model_fn's optimizer computed none with "
                "respect to them, perhaps because they were not used, or tf.stop_gradient() is "
                "applied. Gradients of zeros are taken instead.",
                missing,
            )
        for name in missing:
            found[name] = tf.zeros_like(self._inputs[name].activation)
        multiplier = self._embedding.gradient_multiplier
        if multiplier is None:
            return found
        factor = tf.cast(tf.convert_to_tensor(multiplier(step)), tf.float32)
        return {name: gradient * factor for name, gradient in found.items()}

    def _update(
        self,
        table: Table,
        gradients: Mapping[str, tf.Tensor],
        rate: tf.Tensor,
        host: HostPlaceholders,
    ) -> tf.Operation:
        """Sums the gradients of each row over features, examples and replicas, and applies them."""
        ids, of_rows = [], []
        for name in table.features:
            found = _of_all_replicas(self._found[name], host)
            gradient = host.over_replicas(gradients[name])
            gradient = tf.reshape(gradient, [-1, table.config.dimension])
            ids.append(found.ids)
            of_rows.append(lookup.row_gradients(gradient, found))
        unique, index = tf.unique(_joined(ids))
        summed = tf.math.unsorted_segment_sum(_joined(of_rows), index, tf.size(unique))
        if (limit := self._embedding.clipping_limit) is not None:
            summed = tf.clip_by_value(summed, -limit, limit)
        variable, slots = self._tables[table.name], self._slots[table.name]
        assert table.parameters is not None
        return optimizers.apply(
            table.parameters, optimizers.Rows(variable, slots, unique, summed, rate)
        )


class _Rates:
    """Learning rates of tables; one of a function is computed once, with the replicas' share."""

    def __init__(self, step: tf.Variable, host: HostPlaceholders):
        self._step = step
        self._host = host
        self._of_functions: dict[Any, tf.Tensor] = {}

    def of(self, table: Table) -> tf.Tensor:
        rate = table.learning_rate
        if not callable(rate):
            return tf.constant(rate, tf.float32)
        if rate not in self._of_functions:
            # As an optimizer's own learning rate: of the step before it counts itself.
            value = tf.reshape(tf.cast(rate(self._step), tf.float32), [1])
            self._of_functions[rate] = self._host.over_replicas(value)[0]
        return self._of_functions[rate]


def _filled_with(value: float) -> Callable[..., tf.Tensor]:
    """An initializer. TF's own for constants keep one of the variable's size in the program."""

    def initializer(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> tf.Tensor:
        del partition_info
        return tf.fill(shape, tf.constant(value, dtype))

    return initializer


def _variable(name: str, shape: list[int], initializer: Any, *, trainable: bool) -> tf.Variable:
    return tf.compat.v1.get_variable(
        name, shape, tf.float32, initializer, trainable=trainable, use_resource=True
    )


def _ids_of(features: dict[str, Any], name: str) -> Ids:
    if name not in features:
        raise ValueError(
            f"The features have no {name!r}, whose ids embedding_config_spec looks up. input_fn "
            f"gives {sorted(map(str, features))}."
        )
    ids = features.pop(name)
    if not isinstance(ids, (tf.Tensor, tf.SparseTensor)):
        raise TypeError(
            f"The ids of feature {name!r} must be a tensor or a SparseTensor, got {ids!r}."
        )
    if not ids.dtype.is_integer:
        raise ValueError(
            f"The ids of feature {name!r} must be integers, got {ids.dtype.name}. Strings must be "
            "made ids in input_fn: for a column with a vocabulary, call "
            "column.categorical_column._transform_feature({key: features[key]}) there."
        )
    return ids


def _weights_of(
    features: dict[str, Any], weight_key: str | None, ids: Ids, name: str
) -> tf.SparseTensor | None:
    if weight_key is None:
        return None
    if weight_key not in features:
        raise ValueError(
            f"Cannot find weights {weight_key} of feature {name!r}. Please check if the weights are"
            " present in feature dict. Also note that features cannot share weights. input_fn "
            f"gives {sorted(map(str, features))}."
        )
    weights = features.pop(weight_key)
    if not isinstance(weights, tf.SparseTensor):
        raise ValueError(
            f"The weights {weight_key} of feature {name!r} are dense: {weights}. Dense weights are "
            "not supported on TPU. Please use sparse weights instead."
        )
    if not isinstance(ids, tf.SparseTensor):
        raise ValueError(
            f"Found weights {weight_key} of feature {name!r}, whose ids are dense: {ids}. Give ids "
            "with weights as a SparseTensor."
        )
    return weights


def _results(found: Occurrences) -> Iterable[tf.Tensor]:
    """What the host's share wants of the ids of a replica."""
    tensors = (found.ids, found.outputs, found.weights, found.size, found.count)
    return [t for t in tensors if t is not None]


def _of_all_replicas(found: Occurrences, host: HostPlaceholders) -> Occurrences:
    """Ids of all replicas, whose outputs count through the activations of all replicas."""
    ids = host.over_replicas(found.ids)
    if found.outputs is None:
        return dataclasses.replace(found, ids=ids)
    outputs = host.over_replicas(found.outputs)
    if host.replicas > 1:
        sizes, counts = host.over_replicas(found.size), host.over_replicas(found.count)
        replica = tf.searchsorted(tf.cumsum(counts), tf.range(tf.size(ids)), side="right")
        outputs += tf.gather(tf.cumsum(sizes, exclusive=True), replica)
    weights = None if found.weights is None else host.over_replicas(found.weights)
    return dataclasses.replace(found, ids=ids, outputs=outputs, weights=weights)


def _joined(tensors: list[tf.Tensor]) -> tf.Tensor:
    return tensors[0] if len(tensors) == 1 else tf.concat(tensors, 0)
