"""Scripts in processes of their own that answer with JSON."""

import json
import os
import pathlib
import subprocess
from typing import Any

from support.forks import PLAIN_KERNELS

# Both sides are given the same kernels: those of oneDNN differ by release, and by the processor.
ENVIRONMENT = {**PLAIN_KERNELS, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def run(*command: str | pathlib.Path, given: Any = None, cwd: pathlib.Path | None = None) -> Any:
    done = subprocess.run(
        list(map(str, command)),
        input=json.dumps(given),
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT},
    )
    return answer(done)


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    if done.returncode:
        raise RuntimeError(f"{done.args}: exit {done.returncode}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])
