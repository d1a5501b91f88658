"""Runs the JAX runtime on a GPU or a TPU, and leaves a record.

    python tests/chips/record.py --topology h100:1

It runs the saved steps of five models, compares and measures them, and their memory with what
preflight expected; then the package itself with `runtime="jax"`:
`doctor`, the digits example, trainings beside the bare loop of the same step, host calls and
metrics, a checkpoint that another training begins with, and SIGKILL and going on. It takes half an
hour, or less with `--minutes`: the most important parts come first. It writes
`tests/chips/DEVICE.json` after each part. A part that fails is in the record, with the last lines
of its output, and makes the exit status 1. No names of hosts or paths get into the record.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
TRAIN = str(HERE / "train.py")
DIGITS = str(REPOSITORY / "migration_guide" / "examples" / "digits.py")
COMMAND = (sys.executable, "-m", "tpu_estimator_compat")
ON_JAX = (*COMMAND, "run", "--runtime", "jax", TRAIN)
PACKAGES = ("jax", "jaxlib", "tensorflow", "keras", "numpy")

BERT = [("bert_base", batch) for batch in (32, 8, 16, 64)]
SIZES = [BERT[0], ("convnet", 256), ("encoder", 64), ("resnet50", 64), *BERT[1:]]
SMALL = [("encoder", 8), ("convnet", 8), ("resnet", 2)]
"""For CPUs, where the record is tried."""


class FailedError(Exception):
    """A part of the record failed; the text has the last lines of its output."""


class TimeIsUpError(Exception):
    """The time of `--minutes` ended within a part, or before it."""


class Runs:
    def __init__(
        self,
        folder: pathlib.Path,
        topology: str | None,
        sizes: list[tuple[str, int]],
        steps: int,
        minutes: float = math.inf,
    ):
        self._folder, self._topology, self._sizes, self._steps = folder, topology, sizes, steps
        self._end = time.monotonic() + 60 * minutes

    def parts(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Names and functions of the parts, the most important first."""
        first, *others = self._sizes
        yield "digits", self.digits
        yield self._step(*first)
        yield "host calls, dropout, evaluation", self.whole
        yield "killed and started again", self.killed
        yield "doctor", self.doctor  # several minutes, for much that the others show as well
        yield "begun with a checkpoint", self.begun
        for model, batch in others:
            yield self._step(model, batch)
        yield "bfloat16", self.bfloat16

    def _step(self, model: str, batch: int) -> tuple[str, Callable[[], Any]]:
        return f"{model}, batch {batch}", lambda: self.step(model, batch)

    def doctor(self) -> Any:
        return json.loads(self._output(*COMMAND, "doctor", "--json"))

    def step(self, model: str, batch: int) -> dict[str, Any]:
        saved = self._folder / f"{model}-{batch}"
        self.save(saved, model, batch)
        self._output(sys.executable, str(saved / "run_step.py"), allowed=(0, 1))
        alone = json.loads((saved / "result.json").read_text())
        trained = self.train(model=model, batch=batch, steps=self._steps, loop=self._steps // 5)
        speed = trained["steps_per_second"]
        return {
            "step": alone,
            "steps_per_second": speed,
            "of_the_bare_loop": speed / alone["steps_per_second"],
        }

    def save(self, folder: pathlib.Path, model: str, batch: int) -> None:
        """Saves a step in a new folder, with preflight's estimates of its memory."""
        flags = _flags(model=model, batch=batch)
        self._output(*ON_JAX, *flags, "--steps=1", f"--save_step={folder}")
        if self._topology:
            words = ["preflight", "--json", "--topology", self._topology, TRAIN, *flags]
            # 1 and 2: it may not fit, or not be compiled; then there may be no estimate.
            found = json.loads(self._output(*COMMAND, *words, allowed=(0, 1, 2)))
            known = {r["topology"]: r["memory"]["total"] for r in found["reports"] if r["memory"]}
            (folder / "estimates.json").write_text(json.dumps(known))

    def bfloat16(self) -> dict[str, Any]:
        """Speed with the model in bfloat16, as scripts for TPUs ask for it."""
        model, batch = self._sizes[0]
        flags = {"model": model, "batch": batch, "loop": self._steps // 5}
        plain = self.train(steps=self._steps, **flags)
        short = self.train(steps=self._steps, bfloat16=True, **flags)
        return {
            "model": model,
            "faster": short["steps_per_second"] / plain["steps_per_second"],
            "losses": [plain["losses"][-1], short["losses"][-1]],
        }

    def digits(self) -> dict[str, float]:
        environment = {"TPU_ESTIMATOR_COMPAT_RUNTIME": "jax"}
        words = [f"--data_dir={self._folder}/data", f"--model_dir={self._new('digits')}"]
        output = self._output(sys.executable, DIGITS, *words, environment=environment)
        [found] = re.findall(r"^Test accuracy: ([\d.]+)$", output, re.MULTILINE)
        return {"accuracy": _checked(float(found), float(found) >= 0.97)}

    def whole(self) -> dict[str, Any]:
        """A training with dropout and a host call in each step, and an evaluation."""
        found = self.train(
            model="encoder",
            batch=64,
            steps=200,
            rate=1e-3,
            dropout=0.1,
            host_call=True,
            evaluate=True,
        )
        told = [int(step) for step, _ in found["told"]]
        return {
            "host_calls": _checked(len(told), told == list(range(200))),
            "evaluated": _checked(found["evaluated"], found["evaluated"]["accuracy"] > 0.9),
        }

    def killed(self) -> dict[str, Any]:
        """A training that SIGKILL ends, and that is started again, beside one that runs through."""
        flags = {"model": "encoder", "batch": 64, "steps": 400, "save_every": 100, "dropout": 0.1}
        through = self.train(**flags)
        model_dir = self._new("killed")
        words = [*ON_JAX, *_flags(**flags, model_dir=model_dir)]
        nowhere = subprocess.DEVNULL
        with subprocess.Popen(words, stdout=nowhere, stderr=nowhere, env=_environment()) as run:
            # Once a second checkpoint is being written, the first one is complete.
            try:
                while run.poll() is None and not (model_dir / "model.ckpt-200.index").exists():
                    self._seconds_left()
                    time.sleep(0.01)
            finally:
                run.send_signal(signal.SIGKILL)
        again = json.loads(self._output(*words).splitlines()[-1])
        begun = again["losses"][0][0]
        last, other = through["losses"][-1], again["losses"][-1]
        return {"went_on_by_step": _checked(begun, begun > 100), "losses": [last, other]}

    def begun(self) -> dict[str, Any]:
        """A training of other labels that begins with the encoder of a first one's checkpoint."""
        flags = {"model": "encoder", "batch": 64}
        first = self._new("first")
        self.train(**flags, steps=100, rate=1e-3, model_dir=first)
        plain = self.train(**flags, steps=20, loop=1)
        warm = self.train(**flags, steps=20, loop=1, init_checkpoint=first)
        losses = [plain["losses"][-1], warm["losses"][-1]]
        return {"losses": _checked(losses, warm["losses"][-1] < plain["losses"][-1])}

    def train(self, model_dir: pathlib.Path | None = None, **flags: Any) -> Any:
        words = _flags(model_dir=model_dir or self._new("model"), **flags)
        return json.loads(self._output(*ON_JAX, *words).splitlines()[-1])

    def _new(self, name: str) -> pathlib.Path:
        return pathlib.Path(tempfile.mkdtemp(prefix=name, dir=self._folder))

    def _output(
        self,
        *words: str,
        allowed: tuple[int, ...] = (0,),
        environment: dict[str, str] | None = None,
    ) -> str:
        try:
            done = subprocess.run(
                words,
                capture_output=True,
                text=True,
                env=_environment(**(environment or {})),
                timeout=self._seconds_left(),
            )
        except subprocess.TimeoutExpired:
            raise TimeIsUpError("ended before it was done") from None
        if done.returncode not in allowed:
            last = (done.stdout + done.stderr).strip().splitlines()[-5:]
            raise FailedError(self._without_paths("\n".join(last)))
        return done.stdout

    def _seconds_left(self) -> float | None:
        """Seconds until the end of `--minutes`; None without it."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeIsUpError("not begun")
        return None if left == math.inf else left

    def _without_paths(self, text: str) -> str:
        for path in (self._folder, REPOSITORY, pathlib.Path.home()):
            text = text.replace(str(path), path.name if path == REPOSITORY else "...")
        return text


def _environment(**more: str) -> dict[str, str]:
    """This process's, in which scripts find the package even where it is not installed."""
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def _flags(**values: Any) -> list[str]:
    return [
        f"--{name}" if value is True else f"--{name}={value}"
        for name, value in values.items()
        if value is not None
    ]


def _checked(value: Any, right: bool) -> Any:
    if not right:
        raise FailedError(f"found {value}")
    return value


def machine() -> dict[str, Any]:
    names = "import jax; print(jax.devices()[0].device_kind, jax.device_count(), sep='|')"
    found = subprocess.run(
        [sys.executable, "-c", names], capture_output=True, text=True, check=True
    )
    kind, count = found.stdout.split("\n")[-2].split("|")
    return {
        "device": kind,
        "devices": int(count),
        "driver": _told("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **{package: _version(package) for package in PACKAGES},
        "commit": _told("git", "-C", str(REPOSITORY), "rev-parse", "HEAD"),
        "date": datetime.date.today().isoformat(),
    }


def file_of(device: str) -> pathlib.Path:
    name = re.sub(r"\W+", "_", device.lower()).strip("_")
    return HERE / f"{name}.json"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # TensorFlow's build for CPUs has a name of its own
        return metadata.version(f"{package}-cpu")


def _told(*words: str) -> str | None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.splitlines()[0]


def record(runs: Runs, only: list[str], keep: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Runs the parts whose names have a word of `only`; `keep` gets what is known after each."""
    found: dict[str, Any] = {}
    for name, part in runs.parts():
        if only and not any(word in name for word in only):
            continue
        begun = time.monotonic()
        try:
            found[name] = part()
        except (FailedError, ValueError, LookupError, OSError) as error:
            found[name] = {"failed": f"{type(error).__name__}: {error}"}
        except TimeIsUpError as error:
            found[name] = {"left_out": f"The time was up: {error}."}
        said = "FAILED" if "failed" in found[name] else found[name].get("left_out", "ok")
        print(f"{name}: {said}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        keep(found)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--topology", help="what preflight compiles for, such as h100:1 or v5e:1x1")
    parser.add_argument("--out", help="file to write; default: tests/chips/DEVICE.json")
    parser.add_argument("--only", action="append", default=[], help="parts with this in their name")
    parser.add_argument("--small", action="store_true", help="models for a CPU")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="the most; no part begins after them"
    )
    given = parser.parse_args()
    about = machine()
    sizes, steps = (SMALL, 10) if given.small else (SIZES, 500)
    out = pathlib.Path(given.out or file_of(about["device"]))

    def keep(parts: dict[str, Any]) -> None:
        out.write_text(json.dumps({"machine": about, "parts": parts}, indent=1) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(pathlib.Path(folder), given.topology, sizes, steps, given.minutes)
        parts = record(runs, given.only, keep)
    print(f"The record is in {out}. Please send it in: a pull request, or an issue.")
    return int(any("failed" in part for part in parts.values()))


if __name__ == "__main__":
    sys.exit(main())
