"""Fleet: the driver's end of the workers; starts them and gives each its turn.

All workers of a measurement live at once and wait; one works at a time. So every variant meets the
same weather, and a ratio of two neighbours' times says more than either time.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

_WORKER = pathlib.Path(__file__).parent / "worker.py"
_ROOT = pathlib.Path(__file__).parent.parent.parent


@dataclasses.dataclass(frozen=True)
class Variant:
    side: str
    flags: tuple[str, ...] = ()


VARIANTS = {
    "bare": Variant("bare"),
    "bare_host_call": Variant("bare", ("--listen", "host_call")),
    "bare_jit": Variant("bare", ("--jit",)),
    "keras": Variant("keras_fit"),
    "keras_jit": Variant("keras_fit", ("--jit",)),
    "original": Variant("original"),
    "ours": Variant("ours"),
    "ours_tpu": Variant("ours", ("--use-tpu",)),
    "ours_jit": Variant("ours", ("--jit",)),
    "sessions": Variant("ours", ("--runtime", "session")),
    "ours_hook": Variant("ours", ("--listen", "hook")),
    "ours_tpu_hook": Variant("ours", ("--use-tpu", "--listen", "hook")),
    "ours_host_call": Variant("ours", ("--use-tpu", "--listen", "host_call")),
    "ours_timer_hook": Variant("ours", ("--listen", "timer_hook")),
    "original_every_step": Variant("original", ("--listen", "every_step")),
    "sessions_every_step": Variant("ours", ("--runtime", "session", "--listen", "every_step")),
    "ours_every_step": Variant("ours", ("--listen", "every_step")),
    **{
        f"{runtime}_{replicas}": Variant(
            "ours", ("--use-tpu", "--runtime", runtime, "--replicas", str(replicas))
        )
        for runtime in ("tensorflow", "jax")
        for replicas in (1, 4, 8)
    },
    "ours_slow": Variant("ours", ("--use-tpu", "--listen", "slow")),
    "ours_slow_host_call": Variant("ours", ("--use-tpu", "--listen", "slow_host_call")),
}


class Worker:
    def __init__(
        self,
        variant: str,
        model: str,
        task: str,
        loop: int,
        original: str,
        cache: str | None = None,
    ) -> None:
        kind = VARIANTS[variant]
        self.variant = variant
        self._directory = tempfile.mkdtemp(prefix="benchmark-")
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        python = original if kind.side == "original" else sys.executable
        command = [python, str(_WORKER), "--side", kind.side, "--model", model, "--task", task]
        command += ["--loop", str(loop), "--model-dir", self._directory, *kind.flags]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=_ROOT,
            env={**os.environ, "XDG_CACHE_HOME": cache or self._directory},
            text=True,
        )
        answer = self.answer()
        self.imports, self.baseline = answer["imports"], answer["resident"]

    def answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            tail = self._errors.read()[-3000:]
            raise RuntimeError(f"The worker of {self.variant} ended early:\n{tail}")
        return json.loads(line)

    def do(self, **command: Any) -> dict[str, Any]:
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._errors.close()
        shutil.rmtree(self._directory, ignore_errors=True)


@contextlib.contextmanager
def fleet(
    variants: Sequence[str],
    model: str,
    task: str,
    original: str,
    loop: int = 100,
    cache: str | None = None,
) -> Iterator[list[Worker]]:
    workers: list[Worker] = []
    try:
        for variant in variants:
            workers.append(Worker(variant, model, task, loop, original, cache))
        yield workers
    finally:
        for worker in workers:
            worker.close()
