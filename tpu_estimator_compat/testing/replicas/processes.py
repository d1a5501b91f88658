"""Functions in processes that have a number of replicas of their own: `with_replicas`.

TensorFlow makes its devices once in a process. Each call therefore has a process of its own, which
is forked from a server that has imported TensorFlow and made no device.
"""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import functools
import multiprocessing.spawn
import operator
import os
import pathlib
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, TextIO, TypeVar

from tpu_estimator_compat.engine.files import removal
from tpu_estimator_compat.testing.replicas import entries, forks

T = TypeVar("T")

_MODULES = (
    "tensorflow",
    "tpu_estimator_compat.tpu",
    "tpu_estimator_compat.v1",
    "tpu_estimator_compat.testing.replicas.entries",
)

_ONLY_CPUS = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "HIP_VISIBLE_DEVICES": "-1",
    "JAX_PLATFORMS": "cpu",
}

_LAST_OUTPUT = 4000  # characters of each file
_LONGEST_LINE = 300


@dataclasses.dataclass(frozen=True)
class Ended:
    """A process that has ended.

    Attributes:
      status: its exit status, negative for a signal.
      answers: the values that it sent, in order.
      output: the end of what it printed, and of what pytest captured if it was killed.
    """

    status: int
    answers: list[Any]
    output: str

    def how(self) -> str:
        """The end of a sentence that says how it ended, with its last output."""
        how = f"with exit status {self.status}"
        if self.status < 0:
            how = f"by signal {-self.status} ({signal.Signals(-self.status).name})"
        output = f"Its last output:\n{self.output}" if self.output else "It printed nothing."
        return f"{how}. {output}"


def with_replicas(replicas: int, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Calls a function in a process of its own, in which TensorFlow has `replicas` logical CPUs.

    There, a `TPUEstimator` with `use_tpu=True` runs on that many replicas. GPUs are hidden. What
    the function prints appears here. The first call imports TensorFlow in a process that is kept;
    the calls after it take the time of the function and a fork.

    Args:
      replicas: the number of logical CPUs.
      function: one that another process can import by its name, such as a function at the top of
        a module.
      *args, **kwargs: its arguments. They and its result are pickled.

    Raises:
      Exception: what the function raised, with a note of its traceback; or what `pickle` raised
        for an argument.
      RuntimeError: the process ended before the function did.
      TypeError: `function` is a lambda, or is defined in a function or at a prompt; or what it
        returned cannot be pickled.
      ValueError: `replicas` is not a whole number from 1 on.

    Example:

        def losses():
            estimator = make_estimator(use_tpu=True)
            estimator.train(input_fn, steps=2)
            return estimator.evaluate(input_fn, steps=1)["loss"]


        class LossTest(unittest.TestCase):
            def test_replicas_agree(self):
                one, four = (testing.with_replicas(n, losses) for n in (1, 4))
                self.assertAlmostEqual(one, four, places=5)
    """
    number = whole_number(replicas)
    request = {
        "replicas": number,
        "main": _preparation(function),
        "call": _pickled_call(function, args, kwargs),
    }
    ended = run_in_fork("call", request, live=True)
    if not ended.answers:
        raise RuntimeError(f"The process with {number} replicas ended {ended.how()}")
    [(succeeded, value)] = ended.answers
    if not succeeded:
        raise value
    return value


def whole_number(replicas: Any) -> int:
    """`replicas` as an int; raises ValueError unless it is a whole number from 1 on."""
    try:
        number = operator.index(replicas)
    except TypeError:
        number = 0
    if number < 1 or isinstance(replicas, bool):
        raise ValueError(f"the number of replicas is {replicas!r}: give a whole number from 1 on")
    return number


def run_in_fork(
    entry: str,
    request: Mapping[str, Any],
    live: bool,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Runs a function of `entries.py` in a fork of the server; if interrupted, kills the fork.

    With `live`, prints its output here at once; `cwd` and `env` default to this process's.
    """
    server = kept_server()
    folder = pathlib.Path(tempfile.mkdtemp(dir=server.folder))
    outputs = [folder / "stdout", folder / "stderr"]
    environment = {**(os.environ if env is None else env), **_ONLY_CPUS}
    given = {"sys_path": absolute_path(), **request}
    call = entry, given, str(folder), cwd or os.getcwd(), environment
    try:
        with forks.Forked(server, entries.enter, *call) as forked:
            relays = [_Relay(path) for path in outputs] if live else []
            ended = False
            while not ended:
                ended = forked.poll(0.02) is not None
                for relay in relays:
                    relay.go_on()
            return Ended(forked.wait(0), _answers(folder / "answers"), _last_output(folder))
    finally:
        with contextlib.suppress(OSError):  # the server removes it at its end
            removal.remove(folder, "temporary")


def kept_server() -> forks.Server:
    """The server of this process, which is starting or started; it ends with this process."""
    return _server_of(os.getpid())


@functools.cache
def _server_of(pid: int) -> forks.Server:
    environment = {**os.environ, **_ONLY_CPUS, "PYTHONPATH": os.pathsep.join(absolute_path())}
    return forks.Server(_MODULES, environment)


def absolute_path() -> list[str]:
    """`sys.path` for any working directory."""
    return [os.path.abspath(folder) for folder in sys.path]


def _preparation(function: Callable[..., Any]) -> dict[str, Any]:
    """The message by which `multiprocessing` lets a spawned process import the main script."""
    told = multiprocessing.spawn.get_preparation_data("replicas")
    del told["authkey"]  # cannot be pickled, and is not needed
    if getattr(function, "__module__", "") != "__main__":
        # Keeps the script from being imported: it may have no `__main__` guard.
        told = {k: v for k, v in told.items() if not k.startswith("init_main")}
    return told


def _pickled_call(function: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    name = getattr(function, "__qualname__", repr(function))
    in_function = "<locals>" in name or "<lambda>" in name
    typed_in = getattr(function, "__module__", "") == "__main__" and not _has_main_file()
    if in_function or typed_in:
        raise TypeError(
            f"with_replicas cannot run {name}: another process imports the function by its name. "
            "Define it at the top of a module, and give what it uses as arguments."
        )
    try:
        return pickle.dumps((function, args, kwargs))
    except Exception as error:
        error.add_note(f"with_replicas gives {name} and its arguments to another process, pickled.")
        raise


def _has_main_file() -> bool:
    main = sys.modules["__main__"]
    return getattr(main, "__spec__", None) is not None or hasattr(main, "__file__")


class _Relay:
    """Prints here what a process writes to a file, to the stream of its name."""

    def __init__(self, path: pathlib.Path):
        self._path = path
        self._position = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def go_on(self) -> None:
        if not self._path.exists():  # the process has not begun
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            content = file.read()
        self._position += len(content)
        if text := self._decoder.decode(content):
            stream: TextIO = getattr(sys, self._path.name)
            stream.write(text)
            stream.flush()


def _answers(path: pathlib.Path) -> list[Any]:
    found: list[Any] = []
    if path.exists():
        with path.open("rb") as file:
            while True:
                try:
                    found.append(pickle.load(file))
                except (EOFError, pickle.UnpicklingError):  # the end, or cut off by a kill
                    break
    return found


def _last_output(folder: pathlib.Path) -> str:
    """The ends of a process's captured output, stderr and stdout."""
    paths = sorted(p for p in folder.iterdir() if p.name.startswith(("captured", "std")))
    return "\n".join(filter(None, (_end(p.read_text(errors="replace")) for p in paths)))


def _end(text: str) -> str:
    """The end of an output; of a crash, the text around its reason."""
    # Where Python crashes, it prints the names of all extension modules in one line.
    text = "\n".join(line[:_LONGEST_LINE] for line in text.strip().split("\n"))
    crash = text.rfind("Fatal Python error: ")  # the innermost frames come next
    if crash < 0:
        return text[-_LAST_OUTPUT:]
    return text[max(0, crash - _LAST_OUTPUT) : crash + _LAST_OUTPUT]
