"""Observations of a scenario: what it returned, raised, called, logged, printed and left behind.

All of it is made of dicts, lists, numbers and strings, as JSON has them. Numbers keep the name of
their type. What no two runs share is taken out of texts by the rules of `NORMALISED`.
"""

import collections
import contextlib
import glob
import logging
import os
import pathlib
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

NORMALISED = [
    # Paths below the scenario's own directory are kept relative to it: see `Texts`.
    ("address of an object", r" at 0x[0-9a-f]+", ""),
    ("second since 1970, in names of exports and times", r"\b1[5-9]\d{8}\b", "<second>"),
    ("date and time", r"\d{4}-\d\d-\d\dT?[- ]?\d\d:\d\d:\d\d(\.\d+)?", "<time>"),
    ("duration", r"\b[\d.]+(e-\d+)?( ?(sec|secs|seconds|s)\b)", "<n>\\2"),
    ("speed", r"/sec: [\d.e+]+", "/sec: <n>"),
    # Where a class is defined is not what a script relies on: it has moved, or is ours.
    ("module of a class", r"<class '[\w.<>]+\.(\w+)'>", r"<class '\1'>"),
    ("module of an object", r"<[\w.<>]+\.(\w+) object", r"<\1 object"),
    ("path of a Python file", r"[\w/.+-]+/([\w]+\.py)", r"\1"),
    ("random name of a temporary directory", r"/tmp/tmp\w{8}", "<temporary>"),
]
"""Rules for texts: why, pattern, replacement."""

UNHEARD = (
    r"is deprecated and will be removed",  # TensorFlow's own, of what a version deprecates
    r"The name tf\.",  # the same, for names
    r"already exists; retrying",  # two exports within a second
    r"Distribute Coordinator",  # a part of the original that is not here
    r"Using config",  # every field, with addresses: scenarios record fields one by one
    # StepCounterHook compares reads that race with the step: of a step that was raised, by chance.
    r"has not been increased.*previous value: [1-9]",
)
"""Patterns of log lines that are not compared."""

WHILE_WRITING = r"is not in all_model_checkpoint_paths"
"""Such lines come when a checkpoint is written, which here is meanwhile: see checkpoints.md."""


class Texts:
    """Normalises texts of a scenario whose files lie below `home`."""

    def __init__(self, home: str):
        self.home = home

    def __call__(self, text: str) -> str:
        text = text.replace(self.home + "/", "").replace(self.home, "<home>")
        for _, pattern, replacement in NORMALISED:
            text = re.sub(pattern, replacement, text)
        return text


def observe(scenario: Any, home: str, largest: int) -> dict[str, Any]:
    """Runs a scenario in an empty directory; an error that it raises is one of its observations."""
    texts = Texts(home)
    calls: list[Any] = []
    observed: dict[str, Any] = {"error": None, "result": None}

    def record(*what: Any) -> None:
        calls.append([plain(w, texts) for w in what])

    with heard(texts) as (log, warned), printed() as output:
        try:
            observed["result"] = plain(scenario(os.path.join(home, "model"), record), texts)
        except Exception as error:
            traceback.print_exc()  # for the log of the process
            observed["error"] = described(error, texts)
        tf.summary.FileWriterCache.clear()  # closes the event files
    return {
        **observed,
        "calls": calls,
        "log": [line for line in log if not re.search(WHILE_WRITING, line)],
        "log while writing": [line for line in log if re.search(WHILE_WRITING, line)],
        "warnings": warned,
        "stdout": texts("".join(output)).splitlines(),
        "files": files(home, texts),
        "events": events(home, texts),
        "checkpoints": checkpoints(home, texts, largest),
    }


def described(error: Exception, texts: Texts) -> dict[str, str]:
    """An error's type and text; of an error of an op the first line, since tracebacks follow."""
    text = str(error).strip()
    if isinstance(error, tf.errors.OpError):
        text = text.splitlines()[0] if text else ""
    return {"type": type(error).__name__, "text": texts(text)}


def plain(value: Any, texts: Texts) -> Any:
    """A value as JSON has it, with the types of numbers and arrays."""
    if isinstance(value, dict):
        return {str(k): plain(v, texts) for k, v in sorted(value.items(), key=lambda i: str(i[0]))}
    if isinstance(value, (list, tuple)):
        return [plain(v, texts) for v in value]
    if isinstance(value, np.ndarray):
        values = plain(value.tolist(), texts)
        return {"type": f"array of {value.dtype.name}", "shape": list(value.shape), "": values}
    if isinstance(value, np.generic):  # `dtype.name`: NumPy 2 calls `bool_` by another name
        return {"type": value.dtype.name, "": plain(value.item(), texts)}
    if isinstance(value, bytes):
        return "bytes: " + texts(value.decode(errors="backslashreplace"))
    if isinstance(value, str):
        return texts(value)
    if isinstance(value, Exception):
        return {"error": described(value, texts)}
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return f"<{type(value).__name__}>"


class _Lines(logging.Handler):
    def __init__(self, lines: list[str], texts: Texts):
        super().__init__(logging.INFO)
        self.lines, self.texts = lines, texts

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if not any(re.search(pattern, line) for pattern in UNHEARD):
            self.lines.append(f"{record.levelname} {self.texts(line)}")


@contextlib.contextmanager
def heard(texts: Texts) -> Iterator[tuple[list[str], list[str]]]:
    lines: list[str] = []
    shown: list[str] = []
    handler = _Lines(lines, texts)
    logger = logging.getLogger("tensorflow")
    logger.addHandler(handler)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            yield lines, shown
        finally:
            logger.removeHandler(handler)
    # Deprecations are about the versions of TensorFlow, Keras and NumPy.
    unlike = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)
    shown += [
        f"{w.category.__name__} {texts(str(w.message))}"
        for w in warned
        if not issubclass(w.category, unlike) and not re.search(UNHEARD[0], str(w.message))
    ]


@contextlib.contextmanager
def printed() -> Iterator[list[str]]:
    output: list[str] = []
    sys.stdout.flush()
    saved = os.dup(1)
    with tempfile.TemporaryFile("w+") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield output
        finally:
            sys.stdout.flush()
            os.dup2(saved, 1)
            os.close(saved)
            file.seek(0)
            output.append(file.read())


def files(home: str, texts: Texts) -> list[str]:
    names = [str(p.relative_to(home)) for p in pathlib.Path(home).rglob("*") if p.is_file()]
    return sorted(texts(_without_host(name)) for name in names)


def _without_host(name: str) -> str:
    return re.sub(r"(tfevents)\.[^/]*?(\.v2|\.profile-empty)?$", r"\1\2", name)


def events(home: str, texts: Texts) -> dict[str, Any]:
    """Event records by kind of file and tag: [step, value] in their order; speeds without value.

    Under "<order>" are steps and tags of all records of a session's files; ops write in any order.
    """
    found: dict[str, Any] = {}
    for path in sorted(glob.glob(f"{home}/**/*.tfevents.*", recursive=True), key=_numbers):
        name = texts(_without_host(os.path.relpath(path, home)))
        tags = found.setdefault(name, collections.defaultdict(list))
        for event in tf.train.summary_iterator(path):
            for tag, value in _of_event(event, texts):
                tags[tag].append([event.step, value])
                if not name.endswith(".v2"):
                    tags["<order>"].append(f"{event.step} {tag}")
    return found


def _numbers(path: str) -> list[tuple[int, str]]:
    """A key by which the second and number in a name of an event file count as such."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", path)]


def _of_event(event: Any, texts: Texts) -> Iterator[tuple[str, Any]]:
    """Tags and values."""
    for kind, graph in GRAPHS.items():
        if event.HasField(kind):
            shown = graph(getattr(event, kind)).node
            yield f"<{kind}>", "empty" if not shown else "graph"
    if event.HasField("session_log"):
        yield "<session_log>", int(event.session_log.status)
    for value in event.summary.value:
        yield value.tag, _of_summary(value, texts)


GRAPHS = {
    "graph_def": tf.GraphDef.FromString,
    "meta_graph_def": lambda meta: tf.MetaGraphDef.FromString(meta).graph_def,
}


def _of_summary(value: Any, texts: Texts) -> Any:
    if "/sec" in value.tag or re.search(r"/fraction_(of|over)_\d+_(of_\d+_)?full", value.tag):
        return "<n>"  # a speed, or how far the threads are that fill a queue
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return value.simple_value
    if kind == "tensor":
        array = tf.make_ndarray(value.tensor)
        plugin = value.metadata.plugin_data.plugin_name
        return {"plugin": plugin, "": plain(array, texts) if array.size < 20 else list(array.shape)}
    return f"<{kind}>"


def checkpoints(home: str, texts: Texts, largest: int) -> dict[str, Any]:
    found = {}
    for path in sorted(glob.glob(f"{home}/**/checkpoint", recursive=True)):
        folder = os.path.dirname(path)
        state = tf.train.get_checkpoint_state(folder)
        latest = tf.train.latest_checkpoint(folder)
        kept = list(state.all_model_checkpoint_paths) if state else []
        written = re.sub(r"(timestamps?): [\d.e+]+", r"\1: <n>", pathlib.Path(path).read_text())
        found[texts(os.path.relpath(folder, home))] = {
            "state": texts(written).splitlines(),
            "kept": [texts(os.path.relpath(p, folder)) for p in kept],
            "variables": variables(latest, texts, largest) if latest else None,
        }
    return found


def variables(path: str, texts: Texts, largest: int = sys.maxsize) -> dict[str, Any]:
    """Those of a checkpoint; larger ones by type and shape."""
    reader = tf.train.load_checkpoint(path)
    shapes = reader.get_variable_to_shape_map()
    types = reader.get_variable_to_dtype_map()
    return {
        name: plain(reader.get_tensor(name), texts)
        if np.prod(shape) < largest and types[name] != tf.string
        else [types[name].name, list(shape)]
        for name, shape in shapes.items()
    }
