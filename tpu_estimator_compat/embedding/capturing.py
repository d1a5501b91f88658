"""The host stage of tables: looks rows up before a step, and updates the tables after it.

Call model_fn between `enter` and `leave`. `enter` replaces the ids in the features by placeholders
of activations; `leave` builds the lookups that feed the placeholders. A table's variable is made as
soon as its name is known, so that `tf.train.init_from_checkpoint` in model_fn finds it; model_fn
names a feature column's variable when it uses the column. `updates` builds the updates of the
tables in the host part of a training step.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.embedding import lookup, optimizers, resolved_spec, sharding
from tpu_estimator_compat.embedding.config import EmbeddingConfigSpec
from tpu_estimator_compat.embedding.features import FeatureInput, UsedColumns, ids_of, weights_of
from tpu_estimator_compat.embedding.interception import Interception
from tpu_estimator_compat.embedding.lookup import Occurrences
from tpu_estimator_compat.embedding.resolved_spec import Embedding, Table
from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.state import shards
from tpu_estimator_compat.engine.state.shards import Shard
from tpu_estimator_compat.engine.step.host_calls import HostPlaceholders
from tpu_estimator_compat.engine.step.host_stage import HostStage, HostStageBuilder
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tf_internals import tpu_columns, tpu_columns_v2

_WHILE_MODEL_FN = "embedding_tables"


def host_stage(
    spec: EmbeddingConfigSpec,
) -> Callable[[str, int | None, Workers | None], HostStageBuilder]:
    """A function of (mode, batch_size, group) that makes the builder of a mode's host stage."""
    return functools.partial(CapturedTables, resolved_spec.resolve(spec))


class CapturedTables:
    """The tables of one captured graph.

    Args:
      mode: a `ModeKeys` value; TRAIN requires an optimizer for every table.
      batch_size: rows of one replica's features, where shapes must be static; else None.
      group: the machines that train together, each with a shard of every table; None if this
        machine holds whole tables.
    """

    def __init__(
        self, embedding: Embedding, mode: str, batch_size: int | None, group: Workers | None = None
    ):
        self._embedding = embedding
        self._trains = mode == ModeKeys.TRAIN and bool(embedding.tables)
        self._group = group if self._trains else None
        self._batch_size = batch_size
        if self._trains:
            embedding.check_optimizers()
        self._inputs: dict[str, FeatureInput] = {}
        self._found: dict[str, Occurrences] = {}
        self._tables: dict[str, tf.Variable] = {}
        self._slots: dict[str, list[tf.Variable]] = {}
        self._shards: dict[str, Shard] = {}
        self._tensors: dict[Key, tuple[tf.Tensor, tf.Tensor]] = {}
        self._partial: set[Key] = set()
        self._interception: Interception | None = None

    @property
    def stage(self) -> HostStage | None:
        """The lookups before a step, or None; `updates` adds the lookups in sharded tables."""
        if not self._tensors:
            return None
        results = [t for found in self._found.values() for t in _results(found)]
        sharded = [v for v in self.variables if v._get_save_slice_info() is not None]
        return HostStage(
            self._tensors, results if self._trains else (), sharded, frozenset(self._partial)
        )

    @property
    def variables(self) -> list[tf.Variable]:
        """Tables and slots; empty before `leave`."""
        return [*self._tables.values(), *(v for slots in self._slots.values() for v in slots)]

    def enter(self, features: Any) -> Any:
        """Copies the features, with activations in place of the ids.

        An activation is float32 of shape [batch, dimension] or [batch, max_sequence_length,
        dimension]. Weights are removed; for a sequence feature, the lengths are added.
        """
        if not isinstance(features, dict):
            raise TypeError(
                "With embedding_config_spec, the features of input_fn must be a dict that has the "
                f"ids of {sorted(self._embedding.features)}. Got {features!r}."
            )
        features = copy.copy(features)
        used = UsedColumns(self._name_columns_table)
        tf.compat.v1.get_default_graph().get_collection_ref(tpu_columns._TPU_FC_TO_SCOPE)[:] = [
            used
        ]
        for table in self._embedding.tables.values():
            if table.column_key is None:
                self._make_table(table, table.name)
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
        config = self._embedding.features[name]
        ids = ids_of(features, name)
        lookup.check_rank(config.table_id, name, config, ids)
        weights = weights_of(features, config.weight_key, ids, name)
        batch = ids.shape[0] or self._batch_size
        shape = [batch, self._embedding.tables[config.table_id].config.dimension]
        if longest := config.max_sequence_length:
            shape.insert(1, longest)
            lengths = lookup.sequence_length(ids, longest)
            name_of = tpu_columns.get_sequence_length_feature_key_name_from_feature_key_name
            features[name_of(name)] = self._fed(lengths, [batch])
        activation = tf.compat.v1.placeholder(tf.float32, shape, name="activation")
        self._inputs[name] = FeatureInput(ids, weights, activation)

    def _pad(self, features: dict[str, Any], column: Any) -> None:
        """Pads the ids of a column whose table is a variable of model_fn, and adds a mask."""
        name = column.categorical_column.key
        ids = ids_of(features, name)
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
        """A placeholder in the device part, which the host feeds with `tensor`."""
        placeholder = tf.compat.v1.placeholder(tensor.dtype, shape, name="looked_up")
        self._tensors[key(placeholder)] = (placeholder, tensor)
        return placeholder

    def leave(self) -> None:
        """Makes slots and lookups; RuntimeError if model_fn has not used a table's columns."""
        if self._interception is not None:
            self._interception.hide()
        graph, names = tf.compat.v1.get_default_graph(), tf.compat.v1.GraphKeys
        del graph.get_collection_ref(tpu_columns._TPU_FC_TO_SCOPE)[
            :
        ]  # a MetaGraph cannot hold this collection
        for name, table in self._embedding.tables.items():
            if name not in self._tables:
                raise RuntimeError(
                    f"model_fn did not use the feature column of the table {name}, which gives its "
                    "variable a name. Make sure that the feature columns passed to TPUEstimator's "
                    "embedding_config_spec are used in model_fn, or leave this one out."
                )
            # Trainable, like the table of an ordinary column: warm starts depend on it.
            graph.add_to_collections(
                [names.GLOBAL_VARIABLES, names.TRAINABLE_VARIABLES], self._tables[name]
            )
            self._make_slots(table)
        with tf.name_scope("tpu_embedding_lookup"):
            for name, given in self._inputs.items():
                self._look_up(name, given)

    def _name_columns_table(self, column_key: str, scope: str, name: str) -> None:
        """Makes the table of a feature column when model_fn first uses the column."""
        for table in self._embedding.tables.values():
            if table.column_key == column_key:
                self._make_table(table, f"{scope}/{name}" if scope else name)

    def _make_table(self, table: Table, variable_name: str) -> None:
        """Makes a table's variable, outside the collections that optimizers search."""
        shape = [table.config.vocabulary_size, table.config.dimension]
        initializer, shard = table.config.initializer, self._shard(table, variable_name)
        if shard is not None:
            self._shards[table.name] = shard
            shape, initializer = shard.own_shape, sharding.initializer(initializer, shard)
        no_scope = tf.compat.v1.VariableScope(reuse=False, name="")
        with tf.compat.v1.variable_scope(no_scope, auxiliary_name_scope=False):
            variable = _variable(variable_name, shape, initializer, collections=[_WHILE_MODEL_FN])
        if shard is not None:
            shards.make_slice(variable, shard)
        self._tables[table.name] = variable
        # get_variable adds each trainable variable to this collection.
        del tf.compat.v1.get_collection_ref(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)[-1]

    def _shard(self, table: Table, variable_name: str) -> Shard | None:
        """The rows of a table that this machine holds; None if it holds all, as of small tables."""
        rows, group = table.config.vocabulary_size, self._group
        if group is None or rows < group.count:
            return None
        shape = [rows, table.config.dimension]
        return Shard.of_machine(variable_name, shape, group.count, group.index)

    def _make_slots(self, table: Table) -> None:
        if not self._trains:
            return
        assert table.parameters is not None  # the constructor checked it
        variable, shard = self._tables[table.name], self._shards.get(table.name)
        slots = []
        for slot in optimizers.OPTIMIZERS[type(table.parameters)].slots:
            name = f"{variable.op.name}/{slot.suffix}"
            initializer = _filled_with(slot.initial(table.parameters))
            slots.append(_variable(name, variable.shape, initializer, trainable=False))
            if shard is not None:
                shards.make_slice(slots[-1], dataclasses.replace(shard, name=name))
        self._slots[table.name] = slots

    def _look_up(self, name: str, given: FeatureInput) -> None:
        config = self._embedding.features[name]
        table = self._embedding.tables[config.table_id]
        found = lookup.occurrences(table.name, table.config, name, config, given.ids, given.weights)
        # An unknown id fails in the gather itself: "{{node ...}} indices[i] = id is not in [0,
        # rows)". That costs a step nothing; an assertion per feature would add seven operations to
        # each step.
        error = f"Feature_{name}_has_ids_that_table_{table.name}_does_not_have"
        if table.name in self._shards:  # the lookup follows when the ids of all machines are known
            message = f"Feature {name} has ids that table {table.name} does not have."
            self._found[name] = found.checked(table.config.vocabulary_size, error, message)
            return
        rows = found.rows(self._tables[table.name], error)
        self._tensors[key(given.activation)] = (given.activation, found.activation(rows))
        self._found[name] = found.after(rows)

    def updates(self, host: HostPlaceholders) -> list[tf.Operation]:
        """Builds an update per table in the host part, if TRAIN, and lookups in sharded tables."""
        if self._interception is None:
            return []
        step = tf.compat.v1.train.get_global_step()
        gradients = self._gradients(step)
        rates = _Rates(step, host)
        with tf.name_scope("tpu_embedding_update"):
            found = {name: _of_all_replicas(self._found[name], host) for name in self._inputs}
            for name, occurrences in found.items():
                table = self._embedding.features[name].table_id
                if table in self._shards:
                    found[name] = occurrences.held_by(self._shards[table])
                    self._look_up_own(name, found[name], self._tables[table], host.replicas)
            return [
                self._update(table, found, gradients, rates.of(table), host)
                for table in self._embedding.tables.values()
            ]

    def _look_up_own(self, name: str, held: Occurrences, table: tf.Variable, replicas: int) -> None:
        """Builds the part of all replicas' activations that comes from this machine's rows."""
        activation = self._inputs[name].activation
        batch, *others = activation.shape.as_list()
        held = dataclasses.replace(held, shape=[replicas * batch, *others])
        rows = held.rows(table, "rows_of_this_machine")
        self._tensors[key(activation)] = (activation, held.activation(rows))
        self._partial.add(key(activation))

    def _gradients(self, step: tf.Variable) -> dict[str, tf.Tensor]:
        """Gradient of a replica's loss by feature, times the spec's multiplier."""
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
        found: Mapping[str, Occurrences],
        gradients: Mapping[str, tf.Tensor],
        rate: tf.Tensor,
        host: HostPlaceholders,
    ) -> tf.Operation:
        """Sums each row's gradients over features, examples and replicas, and applies the sums."""
        ids, of_rows = [], []
        for name in table.features:
            gradient = host.over_replicas(gradients[name])
            gradient = tf.reshape(gradient, [-1, table.config.dimension])
            ids.append(found[name].ids)
            of_rows.append(lookup.row_gradients(gradient, found[name]))
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
    """Learning rates of tables; each rate function is called once, in the device part."""

    def __init__(self, step: tf.Variable, host: HostPlaceholders):
        self._step = step
        self._host = host
        self._of_functions: dict[Any, tf.Tensor] = {}

    def of(self, table: Table) -> tf.Tensor:
        rate = table.learning_rate
        if not callable(rate):
            return tf.constant(rate, tf.float32)
        if rate not in self._of_functions:
            # The step is not yet counted, as for an optimizer's own learning rate.
            value = tf.reshape(tf.cast(rate(self._step), tf.float32), [1])
            self._of_functions[rate] = self._host.over_replicas(value)[0]
        return self._of_functions[rate]


def _filled_with(value: float) -> Callable[..., tf.Tensor]:
    """A constant initializer; TensorFlow's would put the whole constant in the graph."""

    def initializer(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> tf.Tensor:
        del partition_info
        return tf.fill(shape, tf.constant(value, dtype))

    return initializer


def _variable(name: str, shape: Any, initializer: Any, **options: Any) -> tf.Variable:
    return tf.compat.v1.get_variable(
        name, shape, tf.float32, initializer, use_resource=True, **options
    )


def _results(found: Occurrences) -> Iterable[tf.Tensor]:
    tensors = (found.ids, found.outputs, found.weights, found.size, found.count)
    return [t for t in tensors if t is not None]


def _of_all_replicas(found: Occurrences, host: HostPlaceholders) -> Occurrences:
    """The ids of all replicas; `outputs` index the concatenated activations of all replicas."""
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
