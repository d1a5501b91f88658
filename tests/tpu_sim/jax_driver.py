"""Runs scenarios on JAX's devices, all in one process: `python -m tpu_sim.jax_driver ANSWER`.

The answer is a JSON file: what was seen, as `driver` writes it, by configuration and scenario.
"""

from __future__ import annotations

import json
import pathlib
import sys

import jax

from tpu_sim.configurations import ON_JAX
from tpu_sim.driver import run_scenario


def main(path: str) -> None:
    jax.config.update("jax_num_cpu_devices", max(each.cores for each in ON_JAX.values()))
    answer = {
        name: {
            scenario: run_scenario(
                scenario,
                on_tpu=False,
                cluster=None,
                cores_per_replica=each.cores_per_replica,
                jax_replicas=each.replicas,
            )
            for scenario in each.scenarios
        }
        for name, each in ON_JAX.items()
    }
    pathlib.Path(path).write_text(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
