"""Profiles of steps: from the files of TensorFlow's profiler to TF1's StepStats and timelines."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.core.framework import step_stats_pb2
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.tf_internals import profiler_v2, timeline_lib

_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
_KERNEL = re.compile(r"(?P<name>[^:\s]+):(?P<type>[A-Z_]\w*)")
"""The name of a TensorFlow kernel's event, such as "dense/MatMul:MatMul"."""

ALL_OPERATIONS = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
"""Without this, TensorFlow's profiler leaves out cheap operations."""

_LOOP_OF_STEPS = re.compile(r"^while/(body|cond)/_\d+/")
"""Prefix of kernels' names in a `tf.while_loop` of steps."""

_STEP = "/tensorflow_step/"
"""Prefix of operations' names in JAX's steps: see engine/jax/module.py."""


def is_recording() -> bool:
    """Whether TensorFlow's profiler records: the choice of an executor depends on it."""
    return profiler_v2._profiler is not None


@contextlib.contextmanager
def traced_into(run_metadata: Any) -> Iterator[None]:
    """Profiles the body into `run_metadata.step_stats`, as TF1's sessions did.

    While another profile is recorded, logs a warning and leaves `run_metadata` empty.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            tf.profiler.experimental.start(folder, ALL_OPERATIONS)
        except tf.errors.AlreadyExistsError:
            logging.warning(
                "RunOptions.trace_level is ignored in this run: a profile is being recorded."
            )
            yield
            return
        try:
            yield
        finally:
            tf.profiler.experimental.stop()
        run_metadata.step_stats.CopyFrom(step_stats(folder))


MOST_OF_TIMELINE = 100_000
"""The most operations in a timeline, per device: viewers read all of them into memory."""


def timeline(folder: str) -> str:
    """The first operations of all profiles below `folder`, as JSON for Chrome's trace viewer."""
    stats = step_stats(folder)
    for device_stats in stats.dev_stats:
        del device_stats.node_stats[MOST_OF_TIMELINE:]
    shown = timeline_lib.Timeline(stats)
    text: str = shown.generate_chrome_trace_format(show_dataflow=False, show_memory=False)
    return text


def step_stats(folder: str) -> step_stats_pb2.StepStats:
    """The profiled operations below `folder`, by device, under graph names if XLA has kept them."""
    stats = step_stats_pb2.StepStats()
    by_device: dict[str, Any] = {}
    pattern = os.path.join(user_files.literal(folder), "plugins", "profile", "*", "*.xplane.pb")
    for path in tf.io.gfile.glob(pattern):
        with tf.io.gfile.GFile(path, "rb") as file:
            planes = xplane_pb2.XSpace.FromString(file.read()).planes
        for found in _operations(planes):
            if found.device not in by_device:
                by_device[found.device] = stats.dev_stats.add(device=found.device)
            by_device[found.device].node_stats.add(
                node_name=found.name,
                timeline_label=f"{found.name} = {found.kind}()",
                thread_id=found.thread,
                all_start_micros=found.start // 1_000_000,
                op_end_rel_micros=found.length // 1_000_000,
                all_end_rel_micros=found.length // 1_000_000,
                all_start_nanos=found.start // 1000,
                op_end_rel_nanos=found.length // 1000,
                all_end_rel_nanos=found.length // 1000,
            )
    for device_stats in stats.dev_stats:
        device_stats.node_stats.sort(key=lambda node: node.all_start_nanos)
    return stats


class _Operation(NamedTuple):
    device: str
    thread: int
    name: str
    kind: str
    start: int  # picoseconds
    length: int  # picoseconds
    program: int | None  # id of its XLA program; None for a kernel of TensorFlow


def _operations(planes: Sequence[Any]) -> list[_Operation]:
    found = [operation for plane in planes for operation in _of_plane(plane)]
    used: dict[int, set[str]] = collections.defaultdict(set)
    for operation in found:
        if operation.program is not None:
            used[operation.program].add(operation.name)
    programs = _programs(planes)
    names = {program: _names(programs, program, used[program]) for program in used}
    return [
        operation
        if operation.program is None
        else operation._replace(name=names[operation.program].get(operation.name) or operation.name)
        for operation in found
    ]


def _programs(planes: Iterable[Any]) -> dict[int, dict[str, str]]:
    """For each XLA program, the graph's name for each instruction; "" where there is none."""
    programs: dict[int, dict[str, str]] = {}
    for plane in planes:
        for described in plane.event_metadata.values() if plane.name == "/host:metadata" else ():
            found = {plane.stat_metadata[s.metadata_id].name: s for s in described.stats}
            module = hlo_pb2.HloProto.FromString(found["Hlo Proto"].bytes_value).hlo_module
            programs[_number(found)] = {
                instruction.name: _of_step(instruction.metadata.op_name)
                for computation in module.computations
                for instruction in computation.instructions
            }
    return programs


def _of_step(op_name: str) -> str:
    _, of_step, name = op_name.rpartition(_STEP)
    return name if of_step else ""


def _names(programs: dict[int, dict[str, str]], program: int, used: set[str]) -> dict[str, str]:
    """The graph's names for a program's instructions.

    Events of a program from a cache have another id. For these, it takes the smallest program that
    has all `used` instructions.
    """
    if program in programs:
        return programs[program]
    fitting = [names for names in programs.values() if used <= names.keys()]
    return min(fitting, key=len, default={})


def _number(statistics: Mapping[str, Any]) -> int:
    found = statistics.get("program_id")
    return 0 if found is None else found.int64_value or found.uint64_value


def _of_plane(plane: Any) -> Iterator[_Operation]:
    """The operations of a plane; XLA's have XLA's names."""
    device = plane.name if plane.name.startswith("/device:") else _CPU
    for thread, line in enumerate(plane.lines):
        for event in line.events:
            text: str = plane.event_metadata[event.metadata_id].name
            times = line.timestamp_ns * 1000 + event.offset_ps, event.duration_ps
            if kernel := _KERNEL.fullmatch(text):
                name = _LOOP_OF_STEPS.sub("", kernel["name"])
                yield _Operation(device, thread, name, kernel["type"], *times, None)
                continue
            # XLA's operations have two events with this statistic: the second marks the end.
            statistics = {plane.stat_metadata[s.metadata_id].name: s for s in event.stats}
            if "hlo_op" in statistics and not text.startswith("end: "):
                yield _Operation(device, thread, text, text, *times, _number(statistics))
