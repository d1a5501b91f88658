"""The subject of a check: one mode of a model, for any topology and batch size."""

from __future__ import annotations

import contextlib
import dataclasses
import traceback
from collections.abc import Iterator
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.capture.element_names import element_names
from tpu_estimator_compat.engine.graph import graph_ops, sources
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.preflight.planned import PlannedStep, PlannedTopology, plan_step


class Subject(Protocol):
    """One mode of an estimator, on topologies that are not there.

    Attributes:
      cores_per_replica: devices that share a replica, at least 1.
      loop: steps between two turns of the host; None where that is not known in advance.
      remarks: notes on the estimator for a reader of the report.
    """

    mode: str
    cores_per_replica: int
    loop: int | None
    remarks: list[str]

    def replicas(self, devices: int) -> int:
        """The number of replicas on the given number of devices."""

    def batch_size(self, topology: PlannedTopology, share: int | None) -> int | None:
        """Examples of one replica's step: `share`, or the estimator's own for None.

        ValueError where these replicas cannot share the estimator's batch.
        """

    def objections(self, topology: PlannedTopology) -> list[Finding]:
        """Other settings of the configuration that do not fit these replicas."""

    def element_spec(self, topology: PlannedTopology, share: int | None) -> Any:
        """The structure of `tf.TypeSpec`s that input_fn gives one replica."""

    def capture(
        self, topology: PlannedTopology, element_spec: Any, share: int | None
    ) -> CapturedMode:
        """The captured graph of model_fn for such input."""


class NoStepError(Exception):
    """There is no step to look at, for the reason of `finding`."""

    def __init__(self, finding: Finding):
        super().__init__(finding.message)
        self.finding = finding


def capture(
    subject: Subject, topology: PlannedTopology, share: int | None
) -> tuple[PlannedStep, list[Finding]]:
    """The step of one replica, and the faults of configuration and input.

    `share` is the number of examples of one replica's step; None for the estimator's own. Raises
    NoStepError where input_fn, model_fn or the batch size prevent a step.
    """
    with _told(Kind.CONFIGURATION, "The estimator cannot run on this topology"):
        batch_size = subject.batch_size(topology, share)
    with _told(Kind.INPUT, "input_fn failed"):
        element_spec = subject.element_spec(topology, share)
    objections = list(subject.objections(topology))
    dynamic = _dynamic_input(element_spec)
    element_spec = _with_batch_size(element_spec, batch_size)
    with _told(Kind.MODEL_FN, "model_fn failed"):
        captured = subject.capture(topology, element_spec, share)
        found = _scalars(captured)
        # Scalars are refused below, and what else is wrong is to be found too.
        if any(f.kind is Kind.MODEL_FN for f in found):
            captured = dataclasses.replace(captured, same_on_all_replicas=True)
        step = plan_step(captured, topology.needs_jax)
    # The host takes ids of any number, and looks them up.
    fed = set(step.feed_names)
    dynamic_input = [finding for name, finding in dynamic.items() if name in fed]
    return step, [*objections, *dynamic_input, *found]


@contextlib.contextmanager
def _told(kind: Kind, what: str) -> Iterator[None]:
    """Turns the user's error into a finding: it would occur on a TPU too."""
    try:
        yield
    except Exception as error:
        logging.info("%s:\n%s", what, "".join(traceback.format_exception(error)))
        words = f"{what}: {type(error).__name__}: {error}"
        finding = Finding(Severity.FAILS, kind, words, source=sources.of_error(error))
        raise NoStepError(finding) from error


def _scalars(captured: CapturedMode) -> list[Finding]:
    """Findings on scalars that the host takes from all replicas: they cannot be concatenated."""
    spec = captured.spec
    wanted = {"predictions": spec.predictions if captured.mode == ModeKeys.PREDICT else None}
    host = {"host_call": spec.host_call}
    host |= {"eval_metrics": spec.eval_metrics} if captured.mode == ModeKeys.EVAL else {}
    wanted |= {name: given[1] for name, given in host.items() if given}
    if captured.same_on_all_replicas:
        return []
    return [
        Finding(
            Severity.FAILS,
            Kind.MODEL_FN,
            f"{name} has a scalar. All tensors outfed from TPU should preserve batch size "
            "dimension.",
            "reshape it, for example with tf.reshape(tensor, [1])",
            tensor.op.type,
            tensor.op.name,
            None if graph_ops.is_handle(tensor.op) else sources.of_operation(tensor.op),
        )
        for name, tensors in wanted.items()
        for tensor in tf.nest.flatten(tensors)
        if tensor is not None and tensor.shape.rank == 0
    ]


def _dynamic_input(element_spec: Any) -> dict[str, Finding]:
    """Findings on input without a static shape, by tensor name."""
    flat = tf.nest.flatten(element_spec, expand_composites=True)
    return {
        name: Finding(
            Severity.FAILS,
            Kind.INPUT,
            f"input_fn gives {name} without a static shape: {spec.shape}.",
            "batch with drop_remainder=True, and set the shapes of what was parsed",
        )
        for name, spec in zip(element_names(element_spec), flat, strict=True)
        if not spec.shape.is_fully_defined()
    }


def _with_batch_size(element_spec: Any, batch_size: int | None) -> Any:
    """Fills in unknown first dimensions, so that other faults can be found too."""

    def filled(spec: Any) -> Any:
        if not isinstance(spec, tf.TensorSpec) or not spec.shape.rank:
            return spec
        first, *others = spec.shape.as_list()  # not shape[0], which TF1 behavior makes a Dimension
        return tf.TensorSpec([batch_size if first is None else first, *others], spec.dtype)

    return tf.nest.map_structure(filled, element_spec)
