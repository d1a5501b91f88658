"""`TPUEstimator`: an `Estimator` with a TPU's rules for batch sizes, input, loops and specs."""

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import TPUConfig, TPURunConfig, check_positive_integer
from tpu_estimator_compat.config.arguments import check_number, check_params, check_type
from tpu_estimator_compat.embedding import EmbeddingConfigSpec
from tpu_estimator_compat.embedding.capturing import host_stage
from tpu_estimator_compat.embedding.config import check_allowed
from tpu_estimator_compat.engine.capture.user_functions import (
    RESERVED_PARAMS_KEYS,
    USE_TPU_KEY,
    announced,
    check_model_fn,
    checked_spec,
    declared_arguments,
)
from tpu_estimator_compat.engine.export import tpu_graph
from tpu_estimator_compat.engine.export.saved_model import GraphPlan
from tpu_estimator_compat.engine.inputs import pipeline_configs
from tpu_estimator_compat.engine.modes.rules import InputFn, ModelFn, Rules, as_estimator_spec
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.estimator.exporting import PathLike, ReceiverFn
from tpu_estimator_compat.keras_model import calls
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, TPUEstimatorSpec, WarmStartSettings

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.preflight.estimator_mode import Preflight


class ExportSavedModelApiVersion(enum.Enum):
    """Version of TPU exports: in V1 the estimator puts the model on TPU, in V2 model_fn does.

    Example:
      >>> ExportSavedModelApiVersion(2)
      <ExportSavedModelApiVersion.V2: 2>
    """

    V1 = 1
    V2 = 2


class TPUEstimator(Estimator):
    """An Estimator with TPU support.

    Without a TPU, `use_tpu=True` runs on this machine's replicas (GPUs, logical CPUs or one device)
    under the same rules: per-replica batch sizes, static shapes, CrossShardOptimizer honored, hooks
    called once per loop. `use_tpu=False` runs on one device, batch sizes unchanged, hooks called
    when they need it. The other arguments are those of `Estimator`.

    Args:
      model_fn: function that takes `features` and `params`, and any of `labels`, `mode` and
        `config`; returns a TPUEstimatorSpec or EstimatorSpec.
      config: a `tpu.RunConfig`; required.
      params: hyperparameters; model_fn and input_fn get deep copies, with `batch_size`, `use_tpu`
        and `context` added. The keys `batch_size` and `context` are reserved.
      use_tpu: whether the rules of a TPU hold, on any device.
      train_batch_size: global batch size of training; divisible by the number of replicas.
      eval_batch_size: the same, of evaluation.
      predict_batch_size: the same, of prediction.
      batch_axis: per tensor of (features, labels), the dimension that is split among replicas.
      eval_on_tpu: False to evaluate on one device; model_fn then returns an EstimatorSpec in EVAL.
      export_to_tpu: whether an export holds a graph for TPU.
      export_to_cpu: whether an export holds a graph for CPU.
      embedding_config_spec: an `EmbeddingConfigSpec`: embedding tables with optimizers of their
        own, whose activations model_fn gets if `use_tpu`. None for none.
      export_saved_model_api_version: 1 or 2, or an `ExportSavedModelApiVersion`.

    Raises:
      ValueError: no config, reserved params, batch sizes missing or not positive, a bad model_fn.
      TypeError: a batch size that is not an int, `params` that are not a dict, a string as
        `use_tpu`.

    Example:
      >>> config = RunConfig(model_dir="model", tpu_config=TPUConfig(iterations_per_loop=2))
      >>> estimator = TPUEstimator(model_fn, config=config, train_batch_size=8)
      >>> estimator = estimator.train(input_fn, steps=2)
      >>> int(estimator.get_variable_value("global_step"))
      2
    """

    @calls.observed
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
        embedding_config_spec: EmbeddingConfigSpec | None = None,
        export_saved_model_api_version: int | ExportSavedModelApiVersion = (
            ExportSavedModelApiVersion.V1
        ),
    ):
        config = _checked_config(config)
        _check_arguments(params, use_tpu, batch_axis)
        _warn_of_feed_hook(config.tpu_config)
        sizes = (train_batch_size, eval_batch_size, predict_batch_size)
        _check_batch_sizes(use_tpu, *sizes)
        if use_tpu:
            pipeline_configs.check_config(config.tpu_config)
        if embedding_config_spec is not None:
            check_allowed(embedding_config_spec, config.tpu_config, use_tpu, eval_on_tpu)
        _check_takes_params(check_model_fn(model_fn, params))
        self._use_tpu = use_tpu
        super().__init__(
            model_fn,
            model_dir=model_dir,
            config=config,
            params={} if params is None else params,
            warm_start_from=warm_start_from,
        )
        _tell_of_evaluation(eval_on_tpu, use_tpu)
        self._eval_on_tpu = eval_on_tpu
        self._batch_axis = batch_axis
        self._host_stage = None
        if embedding_config_spec is not None and use_tpu:
            self._host_stage = host_stage(embedding_config_spec)
        self._batch_sizes = dict(
            zip((ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT), sizes, strict=True)
        )
        self._export_to_tpu, self._export_to_cpu = export_to_tpu, export_to_cpu
        self._export_saved_model_api_version = _api_version(export_saved_model_api_version)

    def preflight(
        self,
        input_fn: InputFn,
        topology: str | Sequence[str] = "v5e:2x2",
        mode: str = ModeKeys.TRAIN,
        *,
        depth: str = "compile",
        largest_batch: bool = False,
        time_limit: float = 3600,
        memory_share: float = 0.75,
        progress: Callable[[str, float], None] | None = None,
    ) -> Preflight:
        """Compiles this estimator's step for TPUs and NVIDIA GPUs that this machine lacks.

        It compiles the program that `RunConfig(runtime="jax")` runs there: a loop of the steps of
        one dispatch, with the input of all those steps, and variables updated in place.

        model_fn and input_fn are called as on that TPU, whatever `use_tpu` says; no data is read,
        no variable is allocated, nothing is written to model_dir.

        Args:
          input_fn: gives the signature of the data.
          topology: one or several of "v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5p:2x2x1",
            "v6e:2x2" and the like: chips along x, y (and z); or GPUs, such as "h100:8", "a100-80:4"
            or "t4:1".
          mode: a `ModeKeys` value.
          depth: "scan" reads the graph; "lower" also lowers it to StableHLO; "compile" also calls
            the device's own compiler. If that compiler is missing, the error has the pip line to
            install it.
          largest_batch: whether to search, by compiling, for the largest batch of one replica that
            fits.
          time_limit: seconds that one compilation may take.
          memory_share: the share of a GPU's memory that JAX allocates, above 0 and at most 1;
            there, XLA_PYTHON_CLIENT_MEM_FRACTION sets it. A step below 85 % of the share "fits with
            room".
          progress: called about once a second with the current activity and its seconds so far.

        Returns:
          The reports; print them, or see `to_html()`.

        Raises:
          RuntimeError: tensorflow-tpu is installed, which has no XLA for the CPU.
          ValueError: a topology, mode or depth that does not exist.
          TypeError: an argument of another type.
        """
        from tpu_estimator_compat.tools.preflight.estimator_mode import preflight

        options = depth, largest_batch, time_limit, memory_share, progress
        return preflight(self._mode_rules, input_fn, topology, mode, *options)

    _config: TPURunConfig
    _marks_finished = True

    @property
    def _mode_rules(self) -> Rules:
        return Rules(
            self._model_fn,
            self._params,
            self._config,
            TPUConfig._make(
                self._config.tpu_config
            ),  # may be an instance of a copy of the original's class
            self._use_tpu,
            self._eval_on_tpu,
            self._batch_sizes,
            self._batch_axis,
            self._host_stage,
        )

    def _call_model_fn_for_tpu_export(self, features: Any, labels: Any) -> EstimatorSpec:
        wraps = self._export_saved_model_api_version == ExportSavedModelApiVersion.V1
        # The original sets use_tpu to False with version 1, though the model is on TPU there, too.
        added = {USE_TPU_KEY: not wraps}

        def call(features: Any) -> EstimatorSpec | TPUEstimatorSpec:
            returned = self._mode_rules.call_off_tpu(features, labels, ModeKeys.PREDICT, added)
            return checked_spec(returned)

        # With version 1, the original does not log its call of model_fn.
        with contextlib.nullcontext() if wraps else announced():
            with tpu_graph.inference_context():
                spec = tpu_graph.spec_on_tpu(call, features) if wraps else call(features)
            return as_estimator_spec(spec)

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
    """Exports an `Estimator`'s checkpoint with graphs for CPU and TPU.

    The other arguments, return value and errors are those of `export_saved_model`.

    Args:
      estimator: the estimator; its model_fn must take `params`.

    Raises:
      TypeError: `estimator` is not an Estimator.
    """
    check_type(estimator, "estimator", Estimator, "a tf.estimator.Estimator")
    on_tpu = TPUEstimator(
        estimator._model_fn,
        config=TPURunConfig(model_dir=estimator.model_dir),
        params=estimator.params,
        use_tpu=True,
        train_batch_size=1,  # required, but nothing is trained
    )
    return on_tpu.export_saved_model(
        export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
    )


def _check_takes_params(model_fn: ModelFn) -> None:
    if not declared_arguments(model_fn, {"params": None}):
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, required by "
            "TPUEstimator to pass batch size as params['batch_size']"
        )


def _warn_of_feed_hook(tpu_config: TPUConfig) -> None:
    if tpu_config.experimental_feed_hook is not None:
        logging.warning(
            "experimental_feed_hook=%s has no effect: there is no infeed queue to hook into. "
            "Input is read with tf.data within the loop of steps.",
            tpu_config.experimental_feed_hook,
        )


def _check_arguments(params: Any, use_tpu: Any, batch_axis: Any) -> None:
    check_params(params, settable=True)
    if isinstance(use_tpu, str | bytes):  # the string "False" is true
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


def _tell_of_evaluation(eval_on_tpu: bool, use_tpu: bool) -> None:
    logging.info("_TPUContext: eval_on_tpu %s", eval_on_tpu)
    if eval_on_tpu and not use_tpu:
        logging.warning("eval_on_tpu ignored because use_tpu is False.")


def _checked_config(config: Any) -> TPURunConfig:
    if not isinstance(config, TPURunConfig):
        raise ValueError(
            "`config` must be provided with type `tpu_config.RunConfig`, that is "
            f"tpu_estimator_compat.RunConfig. Got {type(config).__name__}."
        )
    return config


def _check_batch_sizes(
    use_tpu: bool, train: int | None, evaluate: int | None, predict: int | None
) -> None:
    if use_tpu and train is None:
        raise ValueError("`train_batch_size` cannot be `None`")
    check = check_positive_integer if use_tpu else check_number
    for mode, size in (("train", train), ("eval", evaluate), ("predict", predict)):
        if size is not None:
            check(size, f"{mode}_batch_size")


def _api_version(version: int | ExportSavedModelApiVersion) -> ExportSavedModelApiVersion:
    try:
        return ExportSavedModelApiVersion(version)
    except ValueError:
        raise ValueError(
            f"export_saved_model_api_version should be 1 or 2; got {version}."
        ) from None
