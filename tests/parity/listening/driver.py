"""Parity driver: what listeners see. Runs scenarios through one side and records calls and files.

A script for a process of its own, under either interpreter:

    driver.py --side original|ours --out OUT.json [--scenarios MODULE] [--only NAME]

OUT.json holds a record per scenario of `scenarios.py`, or of the module that is named: the calls of
recording hooks, listeners and exporters in their order, log lines, events by directory,
checkpoints, and what the calls returned. Paths, times and speeds are taken out.
"""

from __future__ import annotations

import argparse
import glob
import importlib
import json
import logging
import os
import pathlib
import re
import sys
import tempfile
import traceback
import types
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow.compat.v1 as tf

CHANGING = [
    (r"\b\d{10}\b", "<second>"),
    (r" at 0x[0-9a-f]+", ""),
    (r"\d{4}-\d\d-\d\dT?-?\d\d:\d\d:\d\d", "<time>"),
    (r"\(\d+\.\d+ sec\)", "(<n> sec)"),
    (r"/sec: [\d.e+]+", "/sec: <n>"),
    (r"Time : [\d.]+s", "Time : <n>s"),
    (r"Waiting [\d.]+ secs before starting next", "Waiting <n> secs before starting next"),
    (r"-?\d+\.\d+(e-?\d+)?", "<float>"),
]


OWN_LINES = (
    "Using config",
    "Distribute Coordinator",
    "deprecated",
    "already exists; retrying",
    "params are not passed",
)
"""Lines about a side's own workings."""


def namespace(side: str) -> types.SimpleNamespace:
    """`tpu` and `estimator` of a side, and its name."""
    if side == "original":
        return types.SimpleNamespace(tpu=tf.estimator.tpu, estimator=tf.estimator, name=side)
    return types.SimpleNamespace(
        name=side,
        tpu=importlib.import_module("tpu_estimator_compat.tpu"),
        estimator=importlib.import_module("tpu_estimator_compat.estimator"),
    )


class Recorder:
    """The calls of a scenario, in their order."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __call__(self, *what: Any) -> None:
        self.calls.append([plain(w) for w in what])


def plain(value: Any) -> Any:
    """A value as JSON has it; floats with the digits that both sides share."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, bytes):
        return value.decode()
    return value


class LogLines(logging.Handler):
    """Keeps what TensorFlow logs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if any(words in line for words in OWN_LINES):
            return
        for pattern, stands_for in CHANGING:
            line = re.sub(pattern, stands_for, line)
        self.lines.append(line)


def events(model_dir: str) -> dict[str, list[Any]]:
    """Scalars of the event files by directory: (tag, step, value), speeds without value."""
    found: dict[str, list[Any]] = {}
    for path in sorted(glob.glob(f"{model_dir}/**/events.out.tfevents.*", recursive=True)):
        directory = os.path.relpath(os.path.dirname(path), model_dir)
        entries = found.setdefault(directory, [])
        for event in tf.train.summary_iterator(path):
            for kind in ("graph_def", "meta_graph_def", "session_log"):
                if event.HasField(kind):
                    status = event.session_log.status if kind == "session_log" else None
                    entries.append([kind, event.step, status])
            for value in event.summary.value:
                shown: Any = None
                if value.HasField("simple_value") and "/sec" not in value.tag:
                    shown = plain(value.simple_value)
                elif value.metadata.plugin_data.plugin_name == "scalars":
                    shown = plain(tf.make_ndarray(value.tensor))
                entries.append([value.tag, event.step, shown])
    return found


def files(model_dir: str) -> list[str]:
    names = {
        re.sub(r"(tfevents)\..*", r"\1", str(p.relative_to(model_dir)))
        for p in pathlib.Path(model_dir).rglob("*")
        if p.is_file()
    }
    return sorted(re.sub(r"\b\d{10}\b", "<second>", n) for n in names)


def kept(model_dir: str) -> list[str]:
    state = tf.train.get_checkpoint_state(model_dir)
    return [os.path.basename(p) for p in state.all_model_checkpoint_paths] if state else []


def run(scenario: Any, side: types.SimpleNamespace) -> dict[str, Any]:
    """One scenario's record; an error is part of it."""
    model_dir = tempfile.mkdtemp()
    record, log = Recorder(), LogLines()
    logger = logging.getLogger("tensorflow")
    logger.addHandler(log)
    error = result = None
    try:
        result = scenario(side, model_dir, record)
    except Exception as raised:
        error = [type(raised).__name__, str(raised), traceback.format_exc()]
    finally:
        logger.removeHandler(log)
        tf.summary.FileWriterCache.clear()  # closes the event files
    return {
        "result": plain(result),
        "error": error,
        "calls": record.calls,
        "log": [line.replace(model_dir, "<model_dir>") for line in log.lines],
        "events": events(model_dir),
        "files": files(model_dir),
        "kept": kept(model_dir),
    }


def split_cpu(count: int) -> None:
    """Makes `count` logical devices of the CPU, for replicas."""
    tf.config.experimental.set_virtual_device_configuration(
        tf.config.experimental.list_physical_devices("CPU")[0],
        [tf.config.experimental.VirtualDeviceConfiguration()] * count,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", choices=("original", "ours"), required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--scenarios", default="scenarios")
    parser.add_argument("--only")
    args = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.INFO)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    module = importlib.import_module(args.scenarios)
    split_cpu(getattr(module, "LOGICAL_CPUS", 1))
    side = namespace(args.side)
    records = {
        name: run(scenario, side)
        for name, scenario in module.SCENARIOS.items()
        if args.only is None or args.only in name
    }
    with open(args.out, "w") as file:
        json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
