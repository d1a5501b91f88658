"""The evidence of a run, read from the folder of a recorded run, or from a model_dir.

Files may be damaged: an error names the file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.core.util import event_pb2

from tpu_estimator_compat.engine.checkpoint import state
from tpu_estimator_compat.engine.checkpoint.state import latest
from tpu_estimator_compat.engine.files import removal, user_files
from tpu_estimator_compat.tools import regular_file
from tpu_estimator_compat.tools.compare.report import Curve, Failure, Side, Speed

_OF_THE_CLOCK = re.compile(r"(global_step|examples|steps?|loop)(_\d+)?/sec|^steps_per_second")
"""Tags of scalars that measure speed, which is not compared."""

_MOST = 2 << 30
"""The most bytes of a file that protobuf can parse."""

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Evidence:
    """The values that a run has recorded; a field is empty where the run recorded none.

    Attributes:
      curves: "loss", and scalar summaries of training, by tag.
      input: features and labels of the first step.
      checksums: checksums of the input of each training step, by feature.
      start, first_update: variables from which training started, and after the first step.
      variables: variables of the last checkpoint.
      evaluations: results, named by number of the call and metric, or by directory and tag.
      predictions: results, named by number of the call and key.
      names: names in the files that the run wrote, by kind.
      activations: activations and gradients of the first step, by operation.
      operations: facts about the operations of `activations`, in the order of the graph.
      streams: random operations that draw from a stream of their own.
      remarks: sentences on files that end too early.
    """

    side: Side
    curves: Mapping[str, Curve] = dataclasses.field(default_factory=dict)
    input: Arrays = dataclasses.field(default_factory=dict)
    checksums: tuple[Mapping[str, int], ...] = ()
    trainable: frozenset[str] = frozenset()
    start: Arrays = dataclasses.field(default_factory=dict)
    first_update: Arrays = dataclasses.field(default_factory=dict)
    variables: Arrays = dataclasses.field(default_factory=dict)
    evaluations: Arrays = dataclasses.field(default_factory=dict)
    predictions: Arrays = dataclasses.field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    activations: Arrays = dataclasses.field(default_factory=dict)
    operations: tuple[Mapping[str, Any], ...] = ()
    streams: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class CheckpointVariables(Mapping[str, np.ndarray]):
    """The variables of a checkpoint by name, each read on access; none for the path None."""

    def __init__(self, path: str | None):
        self._path = path
        self._reader: Any = None
        self._shapes: dict[str, list[int]] = {}
        if path is not None:
            with _reading(f"The checkpoint {path}"):
                self._reader = tf.train.load_checkpoint(user_files.readable(path))
            self._shapes = self._reader.get_variable_to_shape_map()

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._shapes:
            raise KeyError(name)
        with _reading(f"The variable {name} of the checkpoint {self._path}"):
            return np.asarray(self._reader.get_tensor(name))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._shapes))

    def __len__(self) -> int:
        return len(self._shapes)


def of_run(folder: pathlib.Path, name: str, failure: Failure | None = None) -> Evidence:
    """The evidence in the folder of a recorded run; `failure` is one that is not in its record."""
    record = _json(folder / "record.json", {})
    steps = [json.loads(line) for line in _lines(folder / "losses.jsonl")]
    known = [(step, float(loss)) for step, loss, _ in steps if loss is not None]
    calls = list(enumerate(record.get("calls", []), 1))
    model_dir = folder / "model_dir-0"
    events = _events_below(folder)
    curves = dict(events[model_dir.name].scalars) if model_dir.name in events else {}
    curves.pop("loss", None)
    if known:
        curves["loss"] = _curve(known)
    return Evidence(
        side=Side(
            name,
            str(folder),
            record.get("versions", {}),
            Speed(**{f.name: record.get(f.name) for f in dataclasses.fields(Speed)}),
            failure or _failure(record.get("error")),
        ),
        curves=curves,
        input=_arrays(folder / "input"),
        checksums=tuple(sums for _, _, sums in steps),
        trainable=frozenset(record.get("trainable", [])),
        start=CheckpointVariables(latest(str(folder / "start-0"))),
        first_update=_arrays(folder / "first_update"),
        variables=CheckpointVariables(latest(str(model_dir))),
        evaluations={
            f"{number}/{metric}": np.asarray(float(found["value"]), found["dtype"])
            for number, call in calls
            if call["kind"] == "evaluate"
            for metric, found in call["results"].items()
            if found["value"] is not None
        },
        predictions={
            f"{number}/{key}": value
            for number, call in calls
            if call["kind"] == "predict"
            for key, value in _arrays(folder / call["file"]).items()
        },
        names=_names(folder, events),
        activations=_arrays(folder / "activations"),
        operations=tuple(record.get("operations", [])),
        streams=tuple(record.get("streams", [])),
    )


def of_model_dir(folder: pathlib.Path, name: str) -> Evidence:
    """The evidence in the event files and checkpoints of a model_dir, or in one event file."""
    events = _events_below(folder)
    scalars = events["."].scalars if "." in events else {}
    checkpoint = _latest_checkpoint(folder) if folder.is_dir() else None
    if not scalars and checkpoint is None:
        raise ValueError(
            f"{folder} has neither event files with scalars nor a checkpoint. Give the directory "
            "that was the model_dir of a training."
        )
    return Evidence(
        side=Side(name, str(folder)),
        curves=scalars,
        variables=CheckpointVariables(checkpoint),
        evaluations={
            f"{inner}/{tag} at step {curve.steps[-1]}": np.asarray(curve.values[-1], np.float32)
            for inner, of_evaluation in events.items()
            if inner != "."
            for tag, curve in of_evaluation.scalars.items()
        },
        names=_names(folder, events) if folder.is_dir() else {},
        remarks=tuple(remark for found in events.values() for remark in found.remarks),
    )


def _failure(error: dict[str, Any] | None) -> Failure | None:
    if error is None:
        return None
    full = error["errno"] == 28 or "No space left on device" in error["message"]
    first = error["message"].strip().partition("\n")[0]
    message = f"{error['type']}: {first}"
    return Failure("disk" if full else "script", message, error["traceback"])


def _json(path: pathlib.Path, default: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else default


def _lines(path: pathlib.Path) -> list[str]:
    """Complete lines: a run that was killed may have written a part of one."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def _arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    if not path.with_suffix(".json").exists():
        return {}
    names = _json(path.with_suffix(".json"), [])
    with np.load(path.with_suffix(".npz")) as archive:
        return {name: archive[f"a{i}"] for i, name in enumerate(names)}


def _curve(points: list[tuple[int, float]]) -> Curve:
    return Curve(tuple(step for step, _ in points), tuple(value for _, value in points))


@dataclasses.dataclass(frozen=True)
class _Events:
    """A folder's scalars and tags, except speed; the last value of a step replaces earlier ones."""

    scalars: Mapping[str, Curve]
    tags: frozenset[str]
    remarks: tuple[str, ...] = ()


def _events_below(folder: pathlib.Path) -> dict[str, _Events]:
    """Events by their folder, relative to `folder`, which may be an event file itself."""
    if not folder.is_dir():
        return {".": _events([folder])}
    files: dict[str, list[pathlib.Path]] = {}
    for path in _below(folder):
        if "tfevents" in path.name:
            files.setdefault(os.path.relpath(path.parent, folder), []).append(path)
    return {inner: _events(paths) for inner, paths in sorted(files.items())}


def _events(files: Sequence[pathlib.Path]) -> _Events:
    scalars: dict[str, dict[int, float]] = {}
    tags = set()
    remarks: list[str] = []
    for path in files:
        with _reading(path), _to_the_end(path, remarks):
            regular_file.check(path)
            for step, value in _summaries(path):
                tags.add(value.tag)
                number = _number(value)
                if number is not None:
                    scalars.setdefault(value.tag, {})[step] = number
    curves = {tag: _curve(sorted(points.items())) for tag, points in sorted(scalars.items())}
    return _Events(curves, frozenset(tags), tuple(remarks))


@contextlib.contextmanager
def _to_the_end(path: pathlib.Path, remarks: list[str]) -> Iterator[None]:
    """Turns the error of an event file that ends within a record into a remark."""
    try:
        yield
    except tf.errors.DataLossError as error:
        if "truncated record" not in error.message:
            raise
        remarks.append(
            f"{path} ends within a record: its writer was killed, or it is damaged. What followed "
            "is not compared."
        )


def _summaries(path: pathlib.Path) -> Iterator[tuple[int, Any]]:
    """Steps and values of the summaries in an event file, except speed."""
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        event = event_pb2.Event.FromString(record)
        for value in event.summary.value:
            if not _OF_THE_CLOCK.search(value.tag):
                yield event.step, value


def _number(value: Any) -> float | None:
    if value.HasField("simple_value"):
        return float(value.simple_value)
    if value.HasField("tensor"):
        array = tf.make_ndarray(value.tensor)
        if array.shape == () and array.dtype.kind in "fiu":
            return float(array)
    return None


def _names(folder: pathlib.Path, events: Mapping[str, _Events]) -> dict[str, tuple[str, ...]]:
    tags = {f"{inner}: {tag}" for inner, found in events.items() for tag in found.tags}
    return {"tags of events": tuple(sorted(tags)), "signatures of exports": _signatures(folder)}


def _signatures(folder: pathlib.Path) -> tuple[str, ...]:
    found: set[str] = set()
    for path in _below(folder):
        if path.name == "saved_model.pb":
            with _reading(path):
                model = saved_model_pb2.SavedModel.FromString(regular_file.read(path, _MOST))
                if not model.meta_graphs:
                    raise ValueError("it has no graph")
                # Without the last folder, which is named after the time of the export.
                found.update(_of_export(model, os.path.relpath(path.parent.parent, folder)))
    return tuple(sorted(found))


def _of_export(model: Any, where: str) -> Iterator[str]:
    for graph in model.meta_graphs:
        tags = ",".join(graph.meta_info_def.tags)
        for name, signature in graph.signature_def.items():
            for kind, infos in (("input", signature.inputs), ("output", signature.outputs)):
                for key, info in infos.items():
                    dtype = tf.as_dtype(info.dtype).name if info.dtype else "none"  # an op
                    form = f"{dtype}{_shape(info.tensor_shape)}"
                    yield f"{where} ({tags}) {name}: {kind} {key} {form}"


def _shape(shape: Any) -> str:
    if shape.unknown_rank:
        return "?"
    return "[" + ", ".join("?" if d.size < 0 else str(d.size) for d in shape.dim) + "]"


class Damaged(ValueError):
    """A file cannot be read completely; the message has its name and the reason."""


@contextlib.contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns any error in the context, such as protobuf's, into Damaged, which names the file."""
    try:
        yield
    except Damaged:
        raise
    except Exception as error:
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise Damaged(f"{path} cannot be read: {said}") from error


def _below(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """All files below a folder, in order, without those that a training or an export is writing.

    Raises Damaged where an inner folder cannot be listed.
    """

    def refuse(error: OSError) -> None:
        if isinstance(error, FileNotFoundError):  # a training has removed it
            return
        raise Damaged(f"{error.filename} cannot be listed: {error.strerror}") from error

    for parent, folders, files in os.walk(folder, onerror=refuse):
        written = ("save", "unfinished", "replaced", "temporary export")
        folders[:] = sorted(f for f in folders if not any(removal.named(f, k) for k in written))
        yield from (pathlib.Path(parent, name) for name in sorted(files))


def names_of_checkpoints(folder: str | os.PathLike[str]) -> bytes | None:
    """The content of a folder's file `checkpoint`, if it can be read."""
    try:
        return regular_file.read(pathlib.Path(folder, "checkpoint"), _MOST)
    except OSError:
        return None


def _latest_checkpoint(folder: pathlib.Path) -> str | None:
    """The latest checkpoint by a folder's state file; Damaged where that checkpoint is missing."""
    named = folder / "checkpoint"
    if not named.exists():
        return None
    with _reading(named):
        regular_file.check(named)
        said = tf.train.get_checkpoint_state(str(folder))
    found: str | None = said and said.model_checkpoint_path
    if not found or not state.exists(found):
        raise Damaged(f"{named} cannot be read, or names a checkpoint that is not there")
    for path in folder.iterdir():
        if path.name.startswith(f"{os.path.basename(found)}."):
            with _reading(path):
                regular_file.check(path)
    return found
