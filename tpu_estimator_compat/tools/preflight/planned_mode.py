"""One mode of an estimator as the replicas of absent devices would run it, and its step."""

from __future__ import annotations

import contextlib
import dataclasses
import traceback
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import TPUConfig
from tpu_estimator_compat.engine.capture.capture import element_names
from tpu_estimator_compat.engine.graph import graph_ops, sources
from tpu_estimator_compat.engine.inputs.input_mode import InputMode
from tpu_estimator_compat.engine.jax.device_part import JaxDevicePart
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.engine.jax.lowering.replica_step import ReplicaStep, replica_step
from tpu_estimator_compat.engine.modes import preparation
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.plans import evaluation_plan, prediction_plan, training_plan
from tpu_estimator_compat.engine.modes.rules import InputFn, Rules
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.environment import JAX
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.preflight.targets.target import Target


@dataclasses.dataclass(frozen=True)
class PlannedTopology(Topology):
    """A topology of absent devices; `needs_jax` where only the JAX runtime compiles for them."""

    replicas: int = 1
    needs_jax: bool = False

    @classmethod
    def of(cls, target: Target, replicas: int) -> PlannedTopology:
        """A topology of `replicas` replicas on the hosts of `target`, seen from the first host."""
        strategy = tf.distribute.get_strategy()
        return cls(strategy, True, target.hosts, 0, replicas, target.needs_jax)

    @property
    def compiles_steps(self) -> bool:
        """XLA compiles the device part of all steps."""
        return True

    @property
    def num_replicas(self) -> int:
        return self.replicas


@dataclasses.dataclass(frozen=True)
class PlannedMode:
    """One mode of an estimator, on topologies of absent devices."""

    rules: Rules
    input_fn: InputFn
    mode: str

    @property
    def tpu_config(self) -> TPUConfig:
        assert self.rules.tpu_config is not None  # a TPUEstimator's
        return self.rules.tpu_config

    @property
    def cores_per_replica(self) -> int:
        """Devices that share a replica, at least 1."""
        return self.tpu_config.num_cores_per_replica or 1

    @property
    def loop(self) -> int | None:
        """Number of steps of a loop; None where it is not known in advance."""
        loop = self.tpu_config.loop_length
        known = self.mode == ModeKeys.TRAIN and loop.unit == "count"
        return loop.value if known else None

    @property
    def remarks(self) -> list[str]:
        found = []
        if not self.rules.on_tpu(self.mode):
            found.append(
                "This estimator would run elsewhere (use_tpu=False or eval_on_tpu=False); it was "
                "checked as if it ran on TPU."
            )
        if (cores := self.cores_per_replica) > 1:
            found.append(
                f"{cores} devices share a replica. Memory, FLOPs and bytes are those of one of "
                'them, as `runtime="jax"` divides the step; variables, input and layers are the '
                "whole replica's."
            )
        return found

    def replicas(self, devices: int) -> int:
        if self.tpu_config.num_shards == 1 and self.cores_per_replica == 1:
            return 1
        return devices // self.cores_per_replica

    def placed(self, topology: PlannedTopology, share: int | None) -> tuple[Rules, InputMode]:
        """The rules and the input mode for `share` examples of one replica's step.

        None stands for the estimator's batch size. Raises ValueError where the replicas cannot
        share a batch.
        """
        if not topology.num_replicas:
            raise ValueError(
                f"TPUConfig.num_cores_per_replica is {self.cores_per_replica}, more than the "
                "topology has devices. Name a larger topology, or lower it."
            )
        sizes = dict(self.rules.batch_sizes)
        if share is not None:
            sizes[self.mode] = share * topology.num_replicas
        tpu_config = self.tpu_config._replace(num_shards=None)  # see objections()
        rules = dataclasses.replace(self.rules, batch_sizes=sizes, tpu_config=tpu_config)
        input_mode = rules.input_mode(self.mode, topology)
        input_mode.check()
        return rules, input_mode

    def objections(self, topology: PlannedTopology) -> list[Finding]:
        """A finding where `num_shards` is not the number of replicas."""
        shards, replicas = self.tpu_config.num_shards, topology.num_replicas
        if shards is None or shards == replicas:
            return []
        message = f"TPUConfig.num_shards is {shards}, but this topology has {replicas} replicas."
        advice = f"set num_shards={replicas}, or leave it None"
        return [Finding(Severity.FAILS, Kind.CONFIGURATION, message, advice)]


@dataclasses.dataclass(frozen=True)
class PlannedStep(ReplicaStep):
    """The step of one replica of a captured mode; the JAX runtime compiles `on_jax`."""

    captured: CapturedMode
    on_jax: JaxDevicePart


def plan_step(captured: CapturedMode, needs_jax: bool) -> PlannedStep:
    """The device part of a captured mode, as the configured runtime divides the step.

    With TensorFlow's runtime, a TPU computes every tensor that goes to the host. With JAX's, the
    host computes the tensors that a TPU cannot compute, so preflight has no finding for them.
    """
    with captured.in_graph():
        plan = _plan(captured)
    replicas = captured.topology.num_replicas
    on_jax = JaxDevicePart(plan, replicas)
    runs_on_jax = captured.config.runtime == JAX or needs_jax
    step = on_jax.step if runs_on_jax else replica_step(plan, replicas)
    return PlannedStep(plan, step.program, captured, on_jax)


def _plan(captured: CapturedMode) -> StepPlan:
    if captured.mode == ModeKeys.TRAIN:
        return training_plan(captured)
    if captured.mode == ModeKeys.EVAL:
        return evaluation_plan(captured)[0]
    return prediction_plan(captured, captured.spec.predictions)[0]


class NoStepError(Exception):
    """The mode has no step to check; `finding` has the reason."""

    def __init__(self, finding: Finding):
        super().__init__(finding.message)
        self.finding = finding


def capture(
    planned: PlannedMode, topology: PlannedTopology, share: int | None
) -> tuple[PlannedStep, list[Finding]]:
    """The step of one replica, and the faults that do not prevent it.

    Raises NoStepError if the configuration, input_fn, model_fn or a batch of `share` examples per
    replica prevents the step.
    """
    with _errors_as_findings(Kind.CONFIGURATION, "The estimator cannot run on this topology"):
        rules, input_mode = planned.placed(topology, share)
    with _errors_as_findings(Kind.INPUT, "input_fn failed"):
        element_spec = preparation.element_spec(rules, planned.input_fn, input_mode)
    dynamic = _dynamic_input(element_spec)
    element_spec = _with_batch_size(element_spec, input_mode.model_batch_size)
    with _errors_as_findings(Kind.MODEL_FN, "model_fn failed"):
        captured = preparation.capture_on_placeholders(
            rules, input_mode, element_spec, check_shapes=False
        )
        found = _scalars(captured)
        # Scalars are findings already; the capture goes on to find others.
        if any(f.kind is Kind.MODEL_FN for f in found):
            captured = dataclasses.replace(captured, same_on_all_replicas=True)
        step = plan_step(captured, topology.needs_jax)
    # Ids that the host looks up may have a dynamic shape.
    fed = set(step.feed_names)
    dynamic_input = [finding for name, finding in dynamic.items() if name in fed]
    return step, [*planned.objections(topology), *dynamic_input, *found]


@contextlib.contextmanager
def _errors_as_findings(kind: Kind, what: str) -> Iterator[None]:
    """Turns an error of the user's code into a finding: the error would occur on a TPU too."""
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
