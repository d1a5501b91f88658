"""Profiles of steps, as TensorFlow's profiler writes them, and as sessions of TF1 gave them."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.core.framework import step_stats_pb2
from tensorflow.python.client import timeline as timeline_lib
from tensorflow.tsl.profiler.protobuf import xplane_pb2

_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
_KERNEL = re.compile(r"(?P<name>[^:\s]+):(?P<type>[A-Z_]\w*)")
"""The event of a kernel of TensorFlow, such as "dense/MatMul:MatMul"."""

ALL_OPERATIONS = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
"""By default TensorFlow's profiler leaves out cheap operations."""

_LOOP_OF_STEPS = re.compile(r"^while/(body|cond)/_\d+/")
"""Before the names of a step's kernels, where a loop of TensorFlow makes the steps."""

_STEP = "/tensorflow_step/"
"""Before the names of a step's operations, where JAX runs it: see jax_runtime/module.py."""


@contextlib.contextmanager
def traced_into(run_metadata: Any) -> Iterator[None]:
    """Records what is run, and fills `run_metadata.step_stats`, as a session of TF1 did.

    Where a profile is being recorded already, `run_metadata` stays empty, with a warning.
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
"""The largest number of operations in a timeline: viewers read all of them into memory."""


def timeline(folder: str) -> str:
    """The first operations of all profiles below `folder`, as JSON of Chrome's trace viewer."""
    stats = step_stats(folder)
    for device_stats in stats.dev_stats:
        del device_stats.node_stats[MOST_OF_TIMELINE:]
    shown = timeline_lib.Timeline(stats)
    text: str = shown.generate_chrome_trace_format(show_dataflow=False, show_memory=False)
    return text


def step_stats(folder: str) -> step_stats_pb2.StepStats:
    """The operations of all profiles below `folder`, by device; times are in microseconds.

    They have the names that the model's graph gives them, as far as XLA has kept those.
    """
    stats = step_stats_pb2.StepStats()
    by_device: dict[str, Any] = {}
    for path in tf.io.gfile.glob(os.path.join(folder, "plugins", "profile", "*", "*.xplane.pb")):
        with tf.io.gfile.GFile(path, "rb") as file:
            planes = xplane_pb2.XSpace.FromString(file.read()).planes
        names = _names_of_xla(planes)
        for plane in planes:
            device = plane.name if plane.name.startswith("/device:") else _CPU
            for thread, line in enumerate(plane.lines):
                for name, kind, start, duration in _operations(plane, line, names):
                    if device not in by_device:
                        by_device[device] = stats.dev_stats.add(device=device)
                    by_device[device].node_stats.add(
                        node_name=name,
                        timeline_label=f"{name} = {kind}()",
                        thread_id=thread,
                        all_start_micros=start // 1_000_000,
                        op_end_rel_micros=duration // 1_000_000,
                        all_end_rel_micros=duration // 1_000_000,
                        all_start_nanos=start // 1000,
                        op_end_rel_nanos=duration // 1000,
                        all_end_rel_nanos=duration // 1000,
                    )
    for device_stats in stats.dev_stats:
        device_stats.node_stats.sort(key=lambda node: node.all_start_nanos)
    return stats


def _names_of_xla(planes: Iterable[Any]) -> dict[tuple[int, str], str]:
    """The graph's names of XLA's instructions, by program, out of the programs in a profile."""
    names: dict[tuple[int, str], str] = {}
    for plane in planes:
        for described in plane.event_metadata.values() if plane.name == "/host:metadata" else ():
            found = {plane.stat_metadata[s.metadata_id].name: s for s in described.stats}
            program = _integer(found["program_id"]) if "program_id" in found else 0
            module = hlo_pb2.HloProto.FromString(found["Hlo Proto"].bytes_value).hlo_module
            for instruction in (i for c in module.computations for i in c.instructions):
                _, of_step, name = instruction.metadata.op_name.rpartition(_STEP)
                if of_step:
                    names[program, instruction.name] = name
    return names


def _integer(statistic: Any) -> int:
    number: int = statistic.int64_value or statistic.uint64_value
    return number


def _operations(
    plane: Any, line: Any, names: Mapping[tuple[int, str], str]
) -> Iterator[tuple[str, str, int, int]]:
    """Name, kind, start and length, both in picoseconds, of the operations of a line."""
    for event in line.events:
        text: str = plane.event_metadata[event.metadata_id].name
        start = line.timestamp_ns * 1000 + event.offset_ps
        if kernel := _KERNEL.fullmatch(text):
            name = _LOOP_OF_STEPS.sub("", kernel["name"])
            yield name, kernel["type"], start, event.duration_ps
            continue
        # XLA's have a statistic that names them. So have their ends, which are other events.
        statistics = {plane.stat_metadata[s.metadata_id].name: s for s in event.stats}
        if "hlo_op" in statistics and not text.startswith("end: "):
            program = _integer(statistics["program_id"]) if "program_id" in statistics else 0
            yield names.get((program, text), text), text, start, event.duration_ps
