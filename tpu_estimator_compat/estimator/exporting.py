"""The export methods of estimators: choose the graphs and the checkpoint to export."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.config.arguments import check_callable, check_path, check_type
from tpu_estimator_compat.engine.capture.capture import placeholders
from tpu_estimator_compat.engine.checkpoint.state import exists, latest
from tpu_estimator_compat.engine.export import directories, saved_model
from tpu_estimator_compat.engine.export.saved_model import GraphPlan
from tpu_estimator_compat.engine.modes.rules import InputFn, Rules
from tpu_estimator_compat.keras_model import calls
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, WarmStartSettings
from tpu_estimator_compat.tf_internals import EXPORT_TAG_MAP, deprecation

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.to_keras.lead_out import Report

ReceiverFn = Callable[[], Any]
PathLike = str | bytes | os.PathLike[str]


class Exporting:
    _config: RunConfig
    _model_dir: str
    _warm_start_settings: WarmStartSettings | None
    latest_checkpoint: Callable[[], str | None]

    @calls.observed
    def export_saved_model(
        self,
        export_dir_base: PathLike,
        serving_input_receiver_fn: ReceiverFn,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Writes a SavedModel for serving to `<export_dir_base>/<timestamp>`.

        The SavedModel is written under a name that servers ignore, then renamed. Each entry of the
        spec's `export_outputs` becomes a signature. Without entries, `predictions` become the
        signature `serving_default`.

        Args:
          export_dir_base: directory of exports; created if it does not exist.
          serving_input_receiver_fn: takes no arguments, returns a `ServingInputReceiver` or
            `TensorServingInputReceiver` of `tpu_estimator_compat.estimator.export`.
          assets_extra: path below the SavedModel's `assets.extra` to the file to copy there.
          as_text: whether to write `saved_model.pbtxt` instead of `saved_model.pb`.
          checkpoint_path: the checkpoint to export; None for the newest one, or that of
            `warm_start_from` if there is none.
          experimental_mode: the mode in which model_fn is called.

        Returns:
          The path of the SavedModel: `<export_dir_base>/<seconds since 1970>`, as bytes.

        Raises:
          ValueError: no receiver function or checkpoint, a checkpoint that does not fit, or a bad
            model_fn or receiver.
          TypeError: an argument of another type.
          tf.errors.OpError: `export_dir_base` cannot be written.
        """
        _check_receiver_fn(serving_input_receiver_fn)
        return self._export(
            export_dir_base,
            {experimental_mode: serving_input_receiver_fn},
            assets_extra,
            as_text,
            checkpoint_path,
        )

    @calls.observed
    def experimental_export_all_saved_models(
        self,
        export_dir_base: PathLike,
        input_receiver_fn_map: Mapping[str, ReceiverFn],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
    ) -> bytes:
        """Writes a SavedModel with one graph per mode.

        The graphs of TRAIN and EVAL have the signatures and tags `train` and `eval`. All graphs
        share the variables of the first given mode of TRAIN, EVAL and PREDICT. The other arguments,
        return value and errors are those of `export_saved_model`.

        Args:
          input_receiver_fn_map: `ModeKeys` value to a function that takes no arguments and returns
            a receiver, for TRAIN and EVAL one with labels.

        Raises:
          ValueError: no mode is given.
        """
        return self._export(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
        )

    @calls.observed
    @deprecation.deprecated(
        None, "This function has been renamed, use `export_saved_model` instead."
    )
    def export_savedmodel(
        self,
        export_dir_base: PathLike,
        serving_input_receiver_fn: ReceiverFn,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """The old name of `export_saved_model`, with its arguments, return value and errors.

        Args:
          strip_default_attrs: whether to omit attributes of ops that have their default values, so
            that older servers, which do not know new attributes, can load the graph.
        """
        _check_receiver_fn(serving_input_receiver_fn)
        return self._export(
            export_dir_base,
            {ModeKeys.PREDICT: serving_input_receiver_fn},
            assets_extra,
            as_text,
            checkpoint_path,
            strip_default_attrs,
        )

    def to_keras(
        self,
        input_fn: InputFn,
        out: str | os.PathLike[str],
        *,
        tolerance: float = 1e-5,
        replace: bool = False,
    ) -> Report:
        """Writes this estimator's model as Keras 3 code, with its weights and optimizer.

        Nothing is trained, and nothing is written to model_dir. Both models run on the first batch
        of `input_fn`: where an output, the loss or a gradient differs, no file is written.

        Args:
          input_fn: as for `train`.
          out: the Python file, such as "model.py". The weights are written beside it, to
            "model.weights.h5": those of the newest checkpoint, or initial ones where there is none.
          tolerance: the largest difference of outputs and of the loss, relative for values above 1.
            A hundred times that for gradients, relative to their largest value.
          replace: whether to replace files that are there.

        Returns:
          The report: print it. Its `exit_code` is 0 if the files were written.

        Raises:
          OSError: the files cannot be written, or are there.
          TypeError, ValueError: an argument of another type or value.
        """
        from tpu_estimator_compat.tools.to_keras import lead_out

        return lead_out.estimator(self, input_fn, out, tolerance, replace=replace)

    @calls.observed
    def _export_live(self, path: str, spec: Any, save: Callable[[str], str]) -> None:
        """Writes the SavedModel of a live model to `path`, and replaces a SavedModel there."""
        check_path(path, "filepath")
        with directories.replacing(os.fspath(path)) as base:
            values = f"{base}/values"
            tf.io.gfile.makedirs(values)
            checkpoint = save(values)
            self.export_saved_model(base, lambda: receiver_of(spec), checkpoint_path=checkpoint)

    def _export(
        self,
        base: PathLike,
        receiver_fns: Mapping[str, ReceiverFn],
        assets_extra: Mapping[str, str] | None,
        as_text: bool,
        checkpoint_path: str | None,
        strip_default_attrs: bool = True,
    ) -> bytes:
        _check_paths(base, checkpoint_path, assets_extra)
        check_type(receiver_fns, "input_receiver_fn_map", Mapping, "a dict of mode to function")
        given = checkpoint_path
        path = given or self._checkpoint_to_export()
        # TRAIN first: it writes the variables, and its graph has all variables of a checkpoint.
        modes = [
            m for m in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) if receiver_fns.get(m)
        ]
        if not modes:
            raise ValueError(
                f"No valid modes for exporting found. Got {receiver_fns.keys()}. Give input "
                f"receiver functions for {ModeKeys.TRAIN}, {ModeKeys.EVAL} or {ModeKeys.PREDICT}."
            )
        for mode in modes:
            _check_receiver_fn(receiver_fns[mode])
        plans = [plan for mode in modes for plan in self._graph_plans(mode, receiver_fns[mode])]
        if not plans:
            raise ValueError(
                f"Nothing to export: only mode {ModeKeys.PREDICT} has a graph for TPU, and "
                f"export_to_cpu is False. Got {list(receiver_fns)}; set export_to_cpu."
            )
        request = saved_model.ExportRequest(
            base=base,
            checkpoint_path=path,
            plans=plans,
            assets_extra=assets_extra,
            as_text=as_text,
            strip_default_attrs=strip_default_attrs,
            seed=self._config.tf_random_seed,
            resource_step=self._mode_rules.resource_step,
            session_config=self._config.session_config,
        )
        try:
            return saved_model.export(request)
        except (ValueError, tf.errors.OpError):
            if given or exists(path) or self._checkpoint_to_export() == path:
                raise
        # A concurrent training removed the checkpoint after it was chosen: export the newest one.
        return self._export(base, receiver_fns, assets_extra, as_text, None, strip_default_attrs)

    def _checkpoint_to_export(self) -> str:
        path = self.latest_checkpoint()
        if not path and self._warm_start_settings:
            path = self._warm_start_settings.ckpt_to_initialize_from
            if tf.io.gfile.isdir(path):
                path = latest(path)
        if not path:
            raise ValueError(
                f"Couldn't find trained model at {self._model_dir}. Train first, or give "
                "checkpoint_path."
            )
        return path

    def _graph_plans(self, mode: str, receiver_fn: ReceiverFn) -> list[GraphPlan]:
        def call(features: Any, labels: Any) -> EstimatorSpec:
            return self._mode_rules.call_for_export(features, labels, mode)

        return [GraphPlan(mode, EXPORT_TAG_MAP[mode], receiver_fn, call)]

    @property
    def _mode_rules(self) -> Rules:
        raise NotImplementedError


def receiver_of(spec: Any) -> Any:
    """A receiver whose features, of one spec or of a dict of specs, are fed as they are."""
    from tpu_estimator_compat.estimator import export

    named = spec if isinstance(spec, dict) else {"": spec}
    if not all(isinstance(each, tf.TypeSpec) for each in named.values()):
        raise ValueError(
            f"The features are {spec}. A signature has tensors by name: export_saved_model of the "
            "estimator takes a serving_input_receiver_fn that makes such features of tensors."
        )
    with tf.name_scope("receiver"):
        features = placeholders(spec).structure
    if isinstance(spec, dict):
        return export.ServingInputReceiver(features, features)
    return export.TensorServingInputReceiver(features, features)


def _check_receiver_fn(receiver_fn: ReceiverFn | None) -> None:
    if not receiver_fn:
        raise ValueError(
            f"An input_receiver_fn must be defined. Got {receiver_fn}; give a function that "
            "returns a ServingInputReceiver."
        )
    advice = "Give a function that takes nothing and returns a ServingInputReceiver."
    check_callable(receiver_fn, "serving_input_receiver_fn", advice)


def _check_paths(base: Any, checkpoint_path: Any, assets_extra: Any) -> None:
    check_path(base, "export_dir_base")
    if checkpoint_path is not None:
        check_path(checkpoint_path, "checkpoint_path")
    if assets_extra is not None:
        wanted = "a dict of the path below assets.extra to the file"
        check_type(assets_extra, "assets_extra", Mapping, wanted)
