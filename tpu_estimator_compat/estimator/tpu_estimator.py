"""TPUEstimator: the base estimator with TPU rules for batch sizes, input, loops and specs."""

from __future__ import annotations

import dataclasses
import enum
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat import inputs, topology
from tpu_estimator_compat.arguments import check_number, check_params, check_type
from tpu_estimator_compat.config import (
    InputPipelineConfig,
    IterationsPerLoopCounter,
    TPURunConfig,
    check_positive_integer,
    parse_iterations_per_loop,
)
from tpu_estimator_compat.estimator.estimator import Estimator, InputFn, ModelFn
from tpu_estimator_compat.estimator.exporting import PathLike, ReceiverFn
from tpu_estimator_compat.estimator.preflighting import Preflighting
from tpu_estimator_compat.export import tpu_graph
from tpu_estimator_compat.export.saved_model import GraphPlan
from tpu_estimator_compat.inputs.calling import warn_if_endless
from tpu_estimator_compat.model_fn.calling import (
    BATCH_SIZE_KEY,
    CONTEXT_KEY,
    RESERVED_PARAMS_KEYS,
    USE_TPU_KEY,
    call_model_fn,
    check_model_fn,
    declared_arguments,
    input_arguments,
    set_param,
)
from tpu_estimator_compat.model_fn.context import TPUContext
from tpu_estimator_compat.modes import captured_mode
from tpu_estimator_compat.program.variables import VariableStore
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, TPUEstimatorSpec, WarmStartSettings
from tpu_estimator_compat.topology import BatchSizes, Topology


class ExportSavedModelApiVersion(enum.Enum):
    """Who wraps an exported graph for TPU: V1 the estimator, V2 the model_fn."""

    V1 = 1
    V2 = 2


class TPUEstimator(Preflighting, Estimator):
    """An Estimator with TPU support.

    Without a TPU, `use_tpu=True` runs on this machine's replicas (GPUs, logical CPUs or one
    device) under the same rules: per-replica batch sizes, static shapes, CrossShardOptimizer
    honoured, hooks called once per loop. `use_tpu=False` runs on one device, batch sizes unchanged,
    hooks called when they need it.

    Args:
      model_fn: function of `features` and `params`, and of `labels`, `mode`, `config` where it
        declares them; returns a TPUEstimatorSpec or EstimatorSpec.
      model_dir: directory of checkpoints and events. None for the config's, or a temporary one.
      config: a `tpu.RunConfig`. Cannot be None.
      params: hyperparameters, handed to model_fn and input_fn as deep copies in which
        `batch_size`, `use_tpu` and `context` are set. `batch_size` and `context` are reserved.
      use_tpu: whether TPU rules hold.
      train_batch_size: global batch size; divisible by the number of replicas.
      eval_batch_size: likewise for evaluation.
      predict_batch_size: likewise for prediction.
      batch_axis: per tensor of (features, labels), the dimension that is split among replicas.
      eval_on_tpu: False to evaluate on one device; model_fn then returns an EstimatorSpec in EVAL.
      export_to_tpu: whether an export holds a graph for TPU.
      export_to_cpu: whether an export holds a graph for CPU.
      warm_start_from: a checkpoint or SavedModel path, or `WarmStartSettings`.
      embedding_config_spec: must be None: TPUEmbedding tables need a TPU.
      export_saved_model_api_version: 1 or 2, or an `ExportSavedModelApiVersion`.

    Raises:
      ValueError: no config, reserved params, no or senseless batch sizes, a bad model_fn.
      TypeError: a batch size that is no int, `params` that is no dict, text for `use_tpu`.
    """

    def __init__(
        self,
        model_fn: ModelFn | None = None,
        model_dir: str | os.PathLike[str] | None = None,
        config: TPURunConfig | None = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Sequence[int] | None = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: str | os.PathLike[str] | WarmStartSettings | None = None,
        embedding_config_spec: Any = None,
        export_saved_model_api_version: int | ExportSavedModelApiVersion = (
            ExportSavedModelApiVersion.V1
        ),
    ):
        if not isinstance(config, TPURunConfig):
            raise ValueError(
                "`config` must be provided with type `tpu_config.RunConfig`, that is "
                f"tpu_estimator_compat.RunConfig. Got {type(config).__name__}."
            )
        _check_arguments(params, use_tpu, batch_axis)
        if config.tpu_config.experimental_feed_hook is not None:
            logging.warning(
                "experimental_feed_hook=%s has no effect: there is no infeed queue to hook into. "
                "Input is read with tf.data within the loop of steps.",
                config.tpu_config.experimental_feed_hook,
            )
        if use_tpu:
            _check_batch_sizes(train_batch_size, eval_batch_size, predict_batch_size)
            _check_input_mode(config)
        for mode, size in zip(
            ("train", "eval", "predict"),
            (train_batch_size, eval_batch_size, predict_batch_size),
            strict=True,
        ):
            if size is not None:
                check_number(size, f"{mode}_batch_size")
        if embedding_config_spec is not None:
            raise NotImplementedError(
                "embedding_config_spec: TPUEmbedding tables live in TPU memory and cannot be run "
                "here. Look the embeddings up in model_fn with tf.nn.embedding_lookup."
            )
        _check_takes_params(check_model_fn(model_fn, params))
        self._wants_tpu = use_tpu
        super().__init__(
            model_fn,
            model_dir=model_dir,
            config=config,
            params={} if params is None else params,
            warm_start_from=warm_start_from,
        )
        logging.info("_TPUContext: eval_on_tpu %s", eval_on_tpu)
        if eval_on_tpu and not use_tpu:
            logging.warning("eval_on_tpu ignored because use_tpu is False.")
        self._use_tpu = use_tpu
        self._eval_on_tpu = eval_on_tpu
        self._batch_axis = batch_axis
        self._batch_sizes = BatchSizes(train_batch_size, eval_batch_size, predict_batch_size)
        self._loop_length = parse_iterations_per_loop(self._tpu_config.iterations_per_loop)
        self._export_to_tpu = export_to_tpu
        self._export_to_cpu = export_to_cpu
        self._export_saved_model_api_version = _api_version(export_saved_model_api_version)

    _marks_finished = True

    @property
    def _tpu_config(self):
        return self._config.tpu_config

    def _check_train_limits(self, steps: int | None, max_steps: int | None) -> None:
        super()._check_train_limits(steps, max_steps)
        if not self._use_tpu:
            return
        if steps is None and max_steps is None:
            raise ValueError(
                "For TPU training, one of `steps` or `max_steps` must be set. Cannot be both "
                "`None`."
            )
        if steps is not None:
            check_positive_integer(steps, "Train steps")
        if max_steps is not None:
            check_positive_integer(max_steps, "Train max_steps")

    def _check_eval_steps(self, steps: int | None) -> None:
        if not self._on_tpu(ModeKeys.EVAL):
            super()._check_eval_steps(steps)
            return
        if steps is None:
            raise ValueError("Evaluate `steps` must be set on TPU. Cannot be `None`.")
        check_positive_integer(steps, "Eval steps")

    def _on_tpu(self, mode: str) -> bool:
        return self._use_tpu and (mode != ModeKeys.EVAL or self._eval_on_tpu)

    def _topology(self, mode: str) -> Topology:
        where = topology.resolve(self._config, mode, tpu_semantics=self._on_tpu(mode))
        self._batch_sizes.check(mode, where, self._tpu_config)
        return where

    def _loop(self, where: Topology) -> IterationsPerLoopCounter | None:
        return self._loop_length if where.tpu_semantics else None

    def _batch_size_for_log(self, mode: str) -> int | None:
        return self._batch_sizes.of(mode)

    def _feed(self, input_fn: InputFn, mode: str, where: Topology) -> inputs.DeployedInput:
        if not where.tpu_semantics and topology.is_sliced(mode, self._tpu_config):
            raise ValueError(
                "Invalid TPUConfig `eval_training_input_configuration` value. SLICED mode only "
                "works on use_tpu = True."
            )
        datasets = [
            self._dataset(input_fn, mode, where, call)
            for call in topology.invocations(mode, where, self._tpu_config)
        ]
        return inputs.feed(
            datasets,
            mode,
            where,
            self._tpu_config,
            batch_axis=self._batch_axis,
            predict_batch_size=self._batch_sizes.for_input_fn(mode, where, self._tpu_config),
        )

    def _dataset(
        self, input_fn: InputFn, mode: str, where: Topology, call: topology.Invocation
    ) -> tf.data.Dataset:
        params = self.params
        size = self._batch_sizes.for_input_fn(mode, where, self._tpu_config)
        if size is not None:
            set_param(params, BATCH_SIZE_KEY, size)
        if where.tpu_semantics:
            context = TPUContext(mode, where, self._tpu_config, call.index, call.host)
            set_param(params, CONTEXT_KEY, context)
        offered = {
            "params": params,
            "config": self.config,
            "mode": mode,
            "input_context": inputs.context(where, call.host),
        }
        arguments = input_arguments(input_fn, offered)
        if "params" not in arguments:
            raise ValueError(
                f"input_fn ({input_fn}) does not include params argument, required by TPUEstimator "
                'to pass batch size as params["batch_size"]'
            )
        seed = self._config.tf_random_seed
        dataset = inputs.call_input_fn(lambda: input_fn(**arguments), seed=seed)
        if where.tpu_semantics:
            per_host_v2 = topology.is_per_host_v2(self._tpu_config)
            inputs.check_is_dataset(dataset, mode=mode, per_host_v2=per_host_v2)
            if mode != ModeKeys.PREDICT:
                inputs.warn_of_other_size(dataset, size, self._batch_axis)
        elif mode == ModeKeys.PREDICT:
            warn_if_endless(dataset)
        return dataset

    def _capture(
        self,
        mode: str,
        where: Topology,
        element_spec: Any,
        store: VariableStore | None = None,
        check_shapes: bool = True,
    ) -> captured_mode.CapturedMode:
        partition = self._partition(mode, where, element_spec)
        run = super()._capture(mode, where, element_spec, store, check_shapes)
        return dataclasses.replace(run, partition=partition)

    def _partition(self, mode: str, where: Topology, element_spec: Any) -> list[Any] | None:
        """How the replicas' input is split over their cores: one entry per feed, or None."""
        dims = self._tpu_config.input_partition_dims
        if not where.tpu_semantics or dims is None:
            return None
        features, labels = captured_mode.model_arguments(element_spec, mode)
        cores = self._tpu_config.num_cores_per_replica
        found = inputs.partition_dims(features, labels, dims, cores)
        if not isinstance(where.strategy, tf.distribute.TPUStrategy):
            inputs.log_fallback(mode)
        flat = tf.nest.flatten(element_spec, expand_composites=True)
        return found + [None] * (len(flat) - len(found))  # what marks the padding is not split

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, where: Topology, check_shapes: bool = True
    ) -> EstimatorSpec | TPUEstimatorSpec:
        if where.tpu_semantics and check_shapes:
            if features is not None:
                _check_static(features, "features")
            if labels is not None:
                _check_static(labels, "labels")
        params = self.params
        size = self._batch_sizes.for_model_fn(mode, where, self._tpu_config)
        if size is not None:
            set_param(params, BATCH_SIZE_KEY, size)
        set_param(params, USE_TPU_KEY, where.tpu_semantics)
        if where.tpu_semantics:
            set_param(params, CONTEXT_KEY, TPUContext(mode, where, self._tpu_config))
        remark = None if where.tpu_semantics else f"Running {mode} on CPU/GPU"
        spec = self._call_with_params(features, labels, mode, params, remark)
        if where.tpu_semantics:
            return _checked_tpu_spec(spec, mode, check_shapes)
        return _as_estimator_spec(spec)

    def _call_with_params(
        self, features: Any, labels: Any, mode: str, params: Any, remark: str | None = None
    ) -> EstimatorSpec | TPUEstimatorSpec:
        offered = {"mode": mode, "params": params, "config": self.config}
        return call_model_fn(self._model_fn, features, labels, offered, remark)

    def _call_model_fn_for_export(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        params = self.params
        set_param(params, USE_TPU_KEY, False)
        remark = f"Running {mode} on CPU/GPU"
        return _as_estimator_spec(self._call_with_params(features, labels, mode, params, remark))

    def _call_model_fn_for_tpu_export(self, features: Any, labels: Any) -> EstimatorSpec:
        wraps = self._export_saved_model_api_version == ExportSavedModelApiVersion.V1
        params = self.params
        # The original said so, though with version 1 the model is on TPU too.
        set_param(params, USE_TPU_KEY, not wraps)

        def call(features: Any) -> EstimatorSpec | TPUEstimatorSpec:
            return self._call_with_params(features, labels, ModeKeys.PREDICT, params)

        with tpu_graph.inference_context():
            spec = tpu_graph.spec_on_tpu(call, features) if wraps else call(features)
        return _as_estimator_spec(spec)

    def _graph_plans(self, mode: str, receiver_fn: ReceiverFn) -> list[GraphPlan]:
        if not self._export_to_cpu and not self._export_to_tpu:
            raise ValueError(
                "One of export_to_cpu and export_to_tpu must be true. Got False twice."
            )
        plans = super()._graph_plans(mode, receiver_fn) if self._export_to_cpu else []
        if not self._export_to_tpu:
            return plans
        if mode != ModeKeys.PREDICT:
            logging.warning(
                "TPUEstimator only handles mode PREDICT for exporting when `export_to_tpu` is "
                "`True`; Mode %s will be ignored for TPU.",
                mode,
            )
            return plans
        tags = [tf.saved_model.SERVING, tf.saved_model.TPU]
        call, restore = self._call_model_fn_for_tpu_export, not self._export_to_cpu
        return [*plans, GraphPlan(mode, tags, receiver_fn, call, restore)]


def export_estimator_savedmodel(
    estimator: Estimator,
    export_dir_base: PathLike,
    serving_input_receiver_fn: ReceiverFn,
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
    checkpoint_path: str | None = None,
) -> bytes:
    """Exports what an `Estimator` trained with graphs for CPU and TPU.

    Args:
      estimator: its model_fn must take `params`.
      export_dir_base: as for `export_saved_model`.
      serving_input_receiver_fn: as for `export_saved_model`.
      assets_extra: as for `export_saved_model`.
      as_text: as for `export_saved_model`.
      checkpoint_path: as for `export_saved_model`.

    Returns:
      The path of the SavedModel, as bytes.

    Raises:
      TypeError: `estimator` is none.
      What `export_saved_model` raises.
    """
    check_type(estimator, "estimator", Estimator, "a tf.estimator.Estimator")
    on_tpu = TPUEstimator(
        estimator._model_fn,
        config=TPURunConfig(model_dir=estimator.model_dir),
        params=estimator.params,
        use_tpu=True,
        train_batch_size=1,  # nothing is trained
    )
    return on_tpu.export_saved_model(
        export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
    )


def _as_estimator_spec(spec: EstimatorSpec | TPUEstimatorSpec) -> EstimatorSpec:
    return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec


def _check_takes_params(model_fn: ModelFn) -> None:
    if not declared_arguments(model_fn, {"params": None}):
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, required by "
            "TPUEstimator to pass batch size as params['batch_size']"
        )


def _check_arguments(params: Any, use_tpu: Any, batch_axis: Any) -> None:
    check_params(params, settable=True)
    if isinstance(use_tpu, str | bytes):  # "False" would count as true
        raise TypeError(f"use_tpu must be True or False, got {type(use_tpu)}: {use_tpu!r}")
    if batch_axis is not None:
        wanted = "a list of ints, one per tensor"
        check_type(batch_axis, "batch_axis", (list, tuple), wanted)
        for axis in batch_axis:
            if axis is not None and not hasattr(axis, "__index__"):
                raise TypeError(f"batch_axis must be {wanted}, got {batch_axis!r}")
    if params is not None and any(k in params for k in RESERVED_PARAMS_KEYS):
        raise ValueError(
            f"{list(RESERVED_PARAMS_KEYS)} are reserved keys but existed in params {params}."
        )


def _check_batch_sizes(train: int | None, evaluate: int | None, predict: int | None) -> None:
    if train is None:
        raise ValueError("`train_batch_size` cannot be `None`")
    check_positive_integer(train, "train_batch_size")
    if evaluate is not None:
        check_positive_integer(evaluate, "eval_batch_size")
    if predict is not None:
        check_positive_integer(predict, "predict_batch_size")


def _check_input_mode(config: TPURunConfig) -> None:
    per_core = config.tpu_config.per_host_input_for_training == InputPipelineConfig.PER_SHARD_V1
    if per_core and config.tpu_config.num_cores_per_replica:
        raise ValueError(
            "Model parallelism only supports per host input for training. Please adjust "
            "TPURunconfig.per_host_input_for_training."
        )


def _api_version(version: int | ExportSavedModelApiVersion) -> ExportSavedModelApiVersion:
    try:
        return ExportSavedModelApiVersion(version)
    except ValueError:
        raise ValueError(
            f"export_saved_model_api_version should be 1 or 2; got {version}."
        ) from None


def _check_static(tensors: Any, name: str) -> None:
    for tensor in tf.nest.flatten(tensors, expand_composites=True):
        if not tensor.shape.is_fully_defined():
            raise ValueError(
                f"The {name} to the model returned by input_fn must have static shape. Tensor: "
                f"{tensor}. Batch with drop_remainder=True, and set the shapes of what was parsed."
            )


def _checked_tpu_spec(
    spec: EstimatorSpec | TPUEstimatorSpec, mode: str, check_shapes: bool
) -> EstimatorSpec | TPUEstimatorSpec:
    """Refuses what the original refused on TPU."""
    if isinstance(spec, TPUEstimatorSpec):
        if mode == ModeKeys.PREDICT and check_shapes:
            _check_predictions(spec.predictions)
        return spec
    if mode == ModeKeys.TRAIN:
        if spec.training_chief_hooks:
            raise ValueError(
                "training_chief_hooks returned by EstimatorSpec is not supported in TPUEstimator. "
                "If you want to pass training hooks, please pass via training_hooks."
            )
        return spec
    action = "evaluation" if mode == ModeKeys.EVAL else "prediction"
    raise RuntimeError(
        f"estimator_spec used by TPU {action} must have type `TPUEstimatorSpec`. Got {type(spec)}"
    )


def _check_predictions(predictions: Any) -> None:
    if not isinstance(predictions, dict):
        raise TypeError("TPUEstimatorSpec.predictions must be dict of Tensors.")
    for name, tensor in predictions.items():
        if not tensor.shape.rank or tensor.shape[0] is None:
            raise ValueError(
                f"The tensor with key ({name}) in TPUEstimatorSpec.predictions has dynamic shape "
                f"(should be static). Tensor: {tensor}"
            )
