"""Runs and records a script here: `python -m tpu_estimator_compat.tools.compare.sides.ours JOB`."""

from __future__ import annotations

import functools
import json
import sys

from tpu_estimator_compat import estimator
from tpu_estimator_compat.engine.topology import local
from tpu_estimator_compat.keras_model import calls
from tpu_estimator_compat.old_names.legacy import script
from tpu_estimator_compat.tools.compare.sides import recorder


def main(path: str) -> int:
    """Runs the job of a file; returns 1 if the script failed, else 0."""
    with open(path) as file:
        job = json.load(file)
    if job["logical_cpus"]:
        local.split_cpu(job["logical_cpus"])
    run = functools.partial(
        script.run,
        job["name"],
        job["arguments"],
        job["legacy_packages"],
        modern_packages=job["modern_packages"],
        module=job["module"],
        numpy_legacy=job["numpy_legacy"],
        behavior=job["behavior"],
    )
    return recorder.Recorder(calls, job).record(estimator, run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
