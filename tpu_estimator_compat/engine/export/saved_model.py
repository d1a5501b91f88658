"""Writes a SavedModel: each of its graphs is built and restored in a TF1 session.

Servers run the graph of model_fn, not steps of this package. Saver, SavedModelBuilder, signatures
and initializers are TensorFlow's, so that tables, assets and custom savers work as in the original.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture.capture import new_graph
from tpu_estimator_compat.engine.checkpoint import diagnosis
from tpu_estimator_compat.engine.export import directories
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys
from tpu_estimator_compat.tf_internals import export_utils, graph_view
from tpu_estimator_compat.tf_internals import object_checkpoint as checkpoint_lib

ReceiverFn = Callable[[], Any]
ModelFnCall = Callable[[Any, Any], EstimatorSpec]
"""Takes features and labels, calls model_fn, returns its spec."""


@dataclasses.dataclass(frozen=True)
class GraphPlan:
    """One meta graph of a SavedModel; with `restore`, the checkpoint must have its variables."""

    mode: str
    tags: Sequence[str]
    receiver_fn: ReceiverFn
    call_model_fn: ModelFnCall
    restore: bool = True


@dataclasses.dataclass(frozen=True)
class ExportRequest:
    """The arguments of one `export_saved_model` call.

    Attributes:
      base: directory in which the timestamped directory is made.
      plans: the graphs; the first one writes the variables.
      assets_extra: path below `assets.extra` to the source file; None for none.
      strip_default_attrs: omit attributes with default values, for older servers.
      resource_step: whether the global step is a resource variable even with v1 behavior.
    """

    base: str | bytes | os.PathLike[str]
    checkpoint_path: str
    plans: Sequence[GraphPlan]
    assets_extra: Mapping[str, str] | None
    as_text: bool
    strip_default_attrs: bool
    seed: int | None
    resource_step: bool
    session_config: tf.compat.v1.ConfigProto | None


def export(request: ExportRequest) -> bytes:
    """Writes a SavedModel; returns its path as bytes, as the original did."""
    with directories.new_export(request.base) as directory:
        builder = tf.compat.v1.saved_model.Builder(directory.temporary)
        for number, plan in enumerate(request.plans):
            _add_graph(builder, request, plan, save_variables=number == 0)
        builder.save(request.as_text)
        directories.copy_assets_extra(request.assets_extra, directory.temporary)
    return directory.final


def _add_graph(builder: Any, request: ExportRequest, plan: GraphPlan, save_variables: bool) -> None:
    with new_graph(request.seed, resource_step=request.resource_step):
        receiver = _received(plan.receiver_fn)
        with _noted(receiver.features):
            spec = plan.call_model_fn(receiver.features, getattr(receiver, "labels", None))
        arguments = {
            "tags": plan.tags,
            "signature_def_map": _signatures(receiver, spec, plan.mode),
            "assets_collection": tf.compat.v1.get_collection(
                tf.compat.v1.GraphKeys.ASSET_FILEPATHS
            ),
            "main_op": _local_init_op(spec),
            "saver": _saver(spec),
            "strip_default_attrs": request.strip_default_attrs,
        }
        builder._add_train_op(spec.train_op)  # no public way; does nothing for None
        with tf.compat.v1.Session(config=_session_config(request.session_config)) as session:
            if plan.restore:
                _restore(session, arguments["saver"], request.checkpoint_path, plan.mode)
            if save_variables:
                builder.add_meta_graph_and_variables(session, **arguments)
            else:
                builder.add_meta_graph(**arguments)


def _received(receiver_fn: ReceiverFn) -> Any:
    receiver = receiver_fn()
    missing = [x for x in ("features", "receiver_tensors") if not hasattr(receiver, x)]
    if missing:
        raise ValueError(
            f"The input receiver function {receiver_fn} returned a {type(receiver).__name__} "
            f"({receiver!r}) without {' and '.join(missing)}. It should return a "
            "ServingInputReceiver or TensorServingInputReceiver of "
            "tpu_estimator_compat.estimator.export."
        )
    return receiver


@contextlib.contextmanager
def _noted(features: Any) -> Iterator[None]:
    """Adds a note with the features to model_fn's exceptions: receivers often do not fit it."""
    try:
        yield
    except Exception as error:
        error.add_note(
            "model_fn was called for an export, with the features of the input receiver function: "
            f"{features}. They should have the names, dtypes and shapes of those in training"
            + (
                "; use TensorServingInputReceiver to give a bare tensor instead of a dict."
                if isinstance(features, dict) and list(features) == ["feature"]
                else "."
            )
        )
        raise


def _signatures(receiver: Any, spec: EstimatorSpec, mode: str) -> dict[str, Any]:
    outputs = export_utils.export_outputs_for_mode(
        mode=spec.mode,
        serving_export_outputs=spec.export_outputs,
        predictions=spec.predictions,
        loss=spec.loss,
        metrics=spec.eval_metric_ops,
    )
    return export_utils.build_all_signature_defs(
        receiver.receiver_tensors,
        outputs,
        getattr(receiver, "receiver_tensors_alternatives", None),
        serving_only=mode == ModeKeys.PREDICT,
    )


def _local_init_op(spec: EstimatorSpec) -> tf.Operation:
    """The operation that a server runs after restoring, for local variables and tables."""
    if spec.scaffold.local_init_op is not None:
        return spec.scaffold.local_init_op
    return tf.compat.v1.train.Scaffold.default_local_init_op()


def _saver(spec: EstimatorSpec) -> tf.compat.v1.train.Saver:
    """The scaffold's saver, or a default one, which also restores in the server."""
    saver = spec.scaffold.saver
    if isinstance(saver, checkpoint_lib.Checkpoint):
        objects = graph_view.ObjectGraphView(saver).frozen_saveable_objects()
        return tf.compat.v1.train.Saver(var_list=objects, sharded=True)
    return saver or tf.compat.v1.train.Saver(sharded=True)


def _session_config(config: tf.compat.v1.ConfigProto | None) -> tf.compat.v1.ConfigProto:
    """The estimator's session config, without placement of ops that do not run, such as TPU ops."""
    made = tf.compat.v1.ConfigProto()
    if config is not None:
        made.CopyFrom(config)
    made.graph_options.place_pruned_graph = True
    return made


def _restore(session: Any, saver: tf.compat.v1.train.Saver, path: str, mode: str) -> None:
    with diagnosis.explained(session.graph, saver, path):
        try:
            saver.restore(session, user_files.readable(path))
        except tf.errors.NotFoundError as error:
            missing = "\n".join(m.text for m in diagnosis.mismatches(session.graph, saver, path))
            raise ValueError(
                "Could not load all requested variables from checkpoint. Please make sure your "
                "model_fn does not expect variables that were not saved in the checkpoint.\n\n"
                f"{missing}\n\nEncountered error with mode `{mode}` while restoring checkpoint "
                f"from: `{path}`. Full Traceback:\n\n{error}"
            ) from None
