"""Training: adds the original's ops to the captured graph, and runs the outer loop.

The loop is TensorFlow's MonitoredSession with its hooks, on a session whose `run` makes many steps.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import (
    IterationsPerLoopCounter,
    ParameterServerStrategy,
    RunConfig,
    TaskType,
)
from tpu_estimator_compat.engine.checkpoint.state import (
    CheckpointSource,
    check_writable,
    global_step_in,
)
from tpu_estimator_compat.engine.checkpoint.training_lock import training_in
from tpu_estimator_compat.engine.hooks import Schedule, split_hooks, traits
from tpu_estimator_compat.engine.hooks.limits import LossNanHook, StepLimit
from tpu_estimator_compat.engine.hooks.preemption import Preemption
from tpu_estimator_compat.engine.hooks.progress import ExamplesPerSecondHook, progress_bar
from tpu_estimator_compat.engine.hooks.saver_hook import SaverHook
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.model_modes import Model
from tpu_estimator_compat.engine.modes.plans import training_plan
from tpu_estimator_compat.engine.modes.ready_mode import ReadyMode, make_ready
from tpu_estimator_compat.engine.session.session_creator import (
    SessionCreator,
    Together,
    monitored_session,
)
from tpu_estimator_compat.engine.session.step_session import StepSession
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import SummaryWritersHook, WarmStartSettings

Hook = Any  # a tf.compat.v1.train.SessionRunHook
GraphKeys = tf.compat.v1.GraphKeys


@dataclasses.dataclass(frozen=True)
class TrainRequest:
    """The arguments of one `train` call; None for `steps` or `max_steps` means no limit.

    Attributes:
      warm_start: the source of initial values, if model_dir has no checkpoint.
      loop: the length of a loop with `use_tpu=True`; otherwise None.
      batch_size: examples per step over all replicas, for the log; None for an Estimator.
    """

    hooks: Sequence[Hook]
    saving_listeners: Sequence[tf.compat.v1.train.CheckpointSaverListener]
    steps: int | None
    max_steps: int | None
    warm_start: WarmStartSettings | None
    loop: IterationsPerLoopCounter | None
    batch_size: int | None


def check_task(config: RunConfig) -> None:
    """Raises ValueError where only `train_and_evaluate` can do this process's task in a cluster.

    It evaluates, serves variables, or starts servers for a `ParameterServerStrategy`.
    """
    servers = config.cluster_spec and isinstance(config.train_distribute, ParameterServerStrategy)
    if servers or config.task_type in (TaskType.EVALUATOR, TaskType.PS):
        raise ValueError(
            "Train has been called wrong configuration. Please use "
            "tf.estimator.train_and_evaluate which calls proper API according to given "
            f"configuration. Current configuration: {config}."
        )


def train(
    model: Model, captured: CapturedMode, deployed_input: DeployedInput, request: TrainRequest
) -> np.generic | None:
    """Trains until a limit, a hook or the data's end; returns the last loss, None without steps."""
    config = captured.config
    if config.save_input_state:
        deployed_input = _resumable(captured, deployed_input)
    if captured.writes_files and config.model_dir:
        check_writable(config.model_dir)
    saves = bool(config.save_checkpoints_secs or config.save_checkpoints_steps)
    writes_to = config.model_dir if captured.writes_files else None
    with training_in(writes_to, makes=saves), captured.in_graph():
        captured.start(request.warm_start)
        mode = make_ready(captured, training_plan(captured))
        _collect_loss(mode)
        model.modes.drive(mode)
        hooks = _all_hooks(model, mode, request)
        with Preemption(computes_here=captured.topology.computes_here) as preemption:
            schedule = Schedule(
                hooks,
                request.loop,
                counts_by_one=lambda: mode.plan.counts_by_one,
                interrupted=preemption.interrupted,
            )
            creator = SessionCreator(
                lambda: mode.step_session(deployed_input, schedule.limits),
                mode.scaffold,
                # Other machines get the values that the chief restored.
                CheckpointSource(None, config.model_dir if captured.writes_files else None),
                restore_input=config.save_input_state,
            )
            return _loop(mode, request, creator, [*hooks, preemption], schedule)


def _collect_loss(mode: ReadyMode) -> None:
    """Adds the loss to the graph's losses and, unless model_fn did, to its summaries."""
    graph, loss = mode.captured.graph, mode.plan.loss
    if not any(x.op.name == "loss" for x in graph.get_collection(GraphKeys.SUMMARIES)):
        tf.compat.v1.summary.scalar("loss", loss)
    graph.add_to_collection(GraphKeys.LOSSES, loss)


def _loop(
    mode: ReadyMode,
    request: TrainRequest,
    creator: SessionCreator[StepSession],
    hooks: Sequence[Hook],
    schedule: Schedule,
) -> np.generic | None:
    loss, fetches = None, [*mode.plan.targets, mode.plan.loss]
    with (
        _noting_files(mode.captured),
        Together(creator),
        monitored_session(creator, hooks) as monitored,
    ):
        first = monitored._tf_sess().global_step()
        warns = mode.captured.config.log_step_count_steps is None
        limit = StepLimit(first, request.steps, request.max_steps, warns=warns)
        while not monitored.should_stop():
            values, session = schedule.run(monitored, fetches)
            loss = values[-1]
            limit.after_run(session.steps_last_run, session.global_step())
        if creator.session is not None:
            creator.session.finish_host_calls()
    if loss is None:
        logging.warning(
            "Training with estimator made no steps. Perhaps input is empty or misspecified."
        )
    elif creator.session and creator.session.data_ended:
        limit.data_ended(creator.session.global_step())
    return loss


def _resumable(captured: CapturedMode, deployed_input: DeployedInput) -> DeployedInput:
    if captured.topology.workers:
        raise NotImplementedError(
            "RunConfig(save_input_state=True) on several machines: only the chief writes files. "
            "Set save_input_state=False there."
        )
    return deployed_input.made_resumable()


@contextlib.contextmanager
def _noting_files(captured: CapturedMode) -> Iterator[None]:
    """Adds advice to an error about a file of model_dir."""
    try:
        yield
    except tf.errors.OpError as error:
        folder, text = str(captured.config.model_dir), str(error)
        told = text.startswith("Could not ") or "Training cannot write" in text
        if _names_file(error, folder) and not told:
            error.add_note(
                f"Training could not use a file of model_dir {folder}. See that the disk has room, "
                "and that this process may write there."
            )
        raise


def _names_file(error: tf.errors.OpError, folder: str) -> bool:
    """Whether an error names a file in `folder`, not a tensor with such a name."""
    if isinstance(error, tf.errors.InvalidArgumentError):  # about a step's tensors
        return False
    path = rf"(?:^|[\s'\"(:;]){re.escape(folder.rstrip(os.sep))}(?:/[^\s;]|[;'\"]|$)"
    return re.search(path, str(error.message)) is not None


def is_reached(max_steps: int | None, model_dir: str | None, topology: Topology) -> bool:
    """Whether, by the chief's checkpoints, the next training would begin at its limit."""
    if max_steps is None:
        return False
    step = global_step_in(model_dir)
    if step >= max_steps:  # but the newest checkpoint may be damaged
        step = global_step_in(model_dir, whole=True)
    if group := topology.workers:
        step = int(group.tell(step, "global step"))
    return max_steps <= step


def writer_hooks(captured: CapturedMode) -> list[Hook]:
    """Hooks that open a graph's summary writers, in each mode.

    The original's hook that fed the TPU opened the writers of host calls and of model_fn. An
    Estimator left them to the user, unless the spec was made for TPU.
    """
    for_tpu = captured.topology.tpu_semantics or captured.spec.for_tpu
    return [SummaryWritersHook()] if for_tpu and captured.writes_files else []


def _all_hooks(model: Model, mode: ReadyMode, request: TrainRequest) -> list[Hook]:
    """All hooks of a training in the original's order: the chief's own first."""
    captured, scaffold = mode.captured, mode.scaffold
    spec = captured.spec
    chief_hooks = _chief_hooks(captured, request, scaffold) if captured.writes_files else []
    limits = request.steps, request.max_steps
    stop = [] if limits == (None, None) else [tf.compat.v1.train.StopAtStepHook(*limits)]
    request_hooks, keras_callbacks = split_hooks(
        request.hooks, model, captured.mode, {"loss": spec.loss}
    )
    speed = speed_hooks(captured, request)
    by_estimator = request.batch_size is None  # Estimator's speed hook came first
    on_tpu = not by_estimator and request.loop is not None  # otherwise after the spec's hooks
    return [
        *chief_hooks,
        *(speed if by_estimator else []),
        *_summary_hooks(captured, scaffold),
        *request_hooks,
        *stop,
        LossNanHook(spec.loss),
        *_log_hooks(captured, request),
        *(speed if on_tpu else []),
        *writer_hooks(captured),
        *spec.hooks,
        *([] if by_estimator or on_tpu else speed),
        *keras_callbacks,
        *(progress_bar(spec.loss, *limits) if captured.writes_files else []),
    ]


def _chief_hooks(captured: CapturedMode, request: TrainRequest, scaffold) -> list[Hook]:
    spec, config = captured.spec, captured.config
    user_hooks = [*request.hooks, *spec.hooks, *spec.chief_hooks]
    savers = [h for h in user_hooks if traits.of(h).saves_checkpoints]
    own_saver = []
    if (config.save_checkpoints_secs or config.save_checkpoints_steps) and not savers:
        own_saver = savers = [
            SaverHook(
                config.model_dir or "",  # never empty, since the estimator sets it
                save_input_state=config.save_input_state,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=scaffold,
                save_graph_def=config.checkpoint_save_graph_def,
            )
        ]
    elif savers and config.save_input_state:
        raise ValueError(
            "RunConfig(save_input_state=True) and a CheckpointSaverHook of your own: only the "
            "estimator's own saves the input's position. Drop the hook, and set "
            "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
        )
    _add_listeners(savers, request.saving_listeners)
    return [*own_saver, *spec.chief_hooks]


def _add_listeners(savers, listeners) -> None:
    if listeners and not savers:
        raise ValueError(
            "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
            "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
        )
    for listener in listeners:
        if listener not in savers[0]._listeners:
            savers[0]._listeners.append(listener)


def _summary_hooks(captured: CapturedMode, scaffold) -> list[Hook]:
    if not captured.config.save_summary_steps or not captured.writes_files:
        return []
    return [
        tf.compat.v1.train.SummarySaverHook(
            scaffold=scaffold,
            save_steps=captured.config.save_summary_steps,
            output_dir=captured.config.model_dir,
        )
    ]


def _log_hooks(captured: CapturedMode, request: TrainRequest) -> list[Hook]:
    every, loop = captured.config.log_step_count_steps, request.loop
    off_tpu = request.batch_size is not None and loop is None
    if every is None or off_tpu:  # a TPUEstimator logged its loss only on TPU
        return []
    in_calls: dict[str, Any] = {"every_n_iter": every}
    if loop is not None and loop.unit == "seconds":
        in_calls = {"every_n_secs": loop.value}
    elif loop is not None:
        in_calls = {"every_n_iter": math.ceil(every / loop.value)}  # one call per loop
    tensors = {
        "loss": captured.spec.loss,
        "step": tf.compat.v1.train.get_global_step(captured.graph),
    }
    return [tf.compat.v1.train.LoggingTensorHook(tensors, **in_calls)]


def speed_hooks(captured: CapturedMode, request: TrainRequest) -> list[Hook]:
    """The hook that logs and records steps and examples per second, if the config asks for it."""
    every, loop = captured.config.log_step_count_steps, request.loop
    if every is None:
        return []
    in_steps: dict[str, Any] = {"every_n_steps": every}
    if loop is not None and loop.unit == "seconds":
        in_steps = {"every_n_steps": None, "every_n_secs": loop.value}
    # An Estimator recorded its speed even where it wrote no summaries.
    recorded = captured.config.save_summary_steps or request.batch_size is None
    output_dir = captured.config.model_dir if recorded and captured.writes_files else None
    return [ExamplesPerSecondHook(request.batch_size, output_dir=output_dir, **in_steps)]
