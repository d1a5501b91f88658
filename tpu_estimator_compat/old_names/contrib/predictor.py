"""`tf.contrib.predictor`: functions on arrays, made from SavedModels and estimators."""

from __future__ import annotations

import operator
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.estimator import Estimator

_DEFAULT_KEY = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class Predictor:
    """A function from a dict of arrays to a dict of arrays, with its own session."""

    def __init__(
        self,
        session: tf.Session,
        feed_tensors: dict[str, tf.Tensor],
        fetch_tensors: dict[str, tf.Tensor],
    ):
        self._session = session
        self._feed_tensors = feed_tensors
        self._fetch_tensors = fetch_tensors

    graph = property(operator.attrgetter("_session.graph"))
    session = property(operator.attrgetter("_session"), doc="Close it when it is not needed.")
    feed_tensors = property(operator.attrgetter("_feed_tensors"))
    fetch_tensors = property(operator.attrgetter("_fetch_tensors"))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__} with feed tensors {self._feed_tensors} and fetch_tensors "
            f"{self._fetch_tensors}"
        )

    def __call__(self, input_dict: dict[str, Any]) -> dict[str, np.ndarray]:
        if unexpected := sorted(set(input_dict) - set(self._feed_tensors)):
            raise ValueError(
                f"Got unexpected keys in input_dict: {unexpected}, expected: "
                f"{sorted(self._feed_tensors)}"
            )
        feeds = {self._feed_tensors[name]: value for name, value in input_dict.items()}
        return self._session.run(self._fetch_tensors, feeds)


def from_saved_model(
    export_dir: str,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: dict[str, str] | None = None,
    output_names: dict[str, str] | None = None,
    tags: str | None = None,
    graph: tf.Graph | None = None,
    config: tf.ConfigProto | None = None,
) -> Predictor:
    """A predictor from a SavedModel.

    The signature is given by its key, as a proto, or by tensor names of inputs and outputs; the
    default is `serving_default`. `tags` are separated by commas; the default is `serve`.
    """
    if (input_names is None) != (output_names is None):
        raise ValueError(
            "input_names and output_names must both be specified or both be unspecified."
        )
    given = [signature_def_key, signature_def, input_names]
    if sum(each is not None for each in given) > 1:
        raise ValueError(
            "You must specify at most one of signature_def_key OR signature_def OR(input_names AND "
            "output_names)."
        )
    with (graph or tf.Graph()).as_default() as graph:
        session = tf.Session(graph=graph, config=config)
        folder = user_files.readable(export_dir)
        tag_list = [tag.strip() for tag in (tags or "serve").split(",")]
        meta_graph = tf.saved_model.loader.load(session, tag_list, folder)
    if input_names is None or output_names is None:
        signature = signature_def or _signature(meta_graph, signature_def_key or _DEFAULT_KEY)
        input_names = {name: info.name for name, info in signature.inputs.items()}
        output_names = {name: info.name for name, info in signature.outputs.items()}
    return Predictor(
        session,
        {name: graph.get_tensor_by_name(tensor) for name, tensor in input_names.items()},
        {name: graph.get_tensor_by_name(tensor) for name, tensor in output_names.items()},
    )


def _signature(meta_graph: Any, key: str) -> Any:
    if key not in meta_graph.signature_def:
        raise ValueError(
            f'Got signature_def_key "{key}". Available signatures are '
            f"{sorted(meta_graph.signature_def)}."
        )
    return meta_graph.signature_def[key]


def from_estimator(
    estimator: Estimator,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: tf.Graph | None = None,
    config: tf.ConfigProto | None = None,
) -> Predictor:
    """A predictor from the latest checkpoint; `output_key` is a key of `export_outputs`."""
    with tempfile.TemporaryDirectory() as folder:
        path = estimator.export_saved_model(folder, serving_input_receiver_fn)
        return from_saved_model(
            path.decode(), signature_def_key=output_key, graph=graph, config=config
        )


__all__ = ["Predictor", "from_estimator", "from_saved_model"]
