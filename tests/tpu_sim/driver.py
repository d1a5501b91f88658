"""Runs scenarios in a process of its own: `python -m tpu_sim.driver REQUEST` (a JSON file).

The request:
  mesh: [x, y, z, cores of a chip] of a simulated TPU; null for logical CPUs.
  replicas: how many logical CPUs; without a mesh.
  hosts: machines of the TPU; 1 is this process.
  addresses: of the hosts' servers, where they run already; null to start them in this process.
  cores_per_replica: cores that share a replica; null for one.
  compile: whether XLA compiles what cores run.
  scenarios: their names, in order.
  answer: where to write what was seen: by scenario, `seen` or `error`, and `clusters`. Beside it go
    the programs of the clusters, as SCENARIO.NUMBER.module.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import traceback
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from support.simulated_tpu import devices

from tpu_estimator_compat.lowering import module_cache
from tpu_sim import servers
from tpu_sim.model import Run
from tpu_sim.scenarios import MOVES_TO_HOST, SCENARIOS


def main(path: str) -> None:
    request = json.loads(pathlib.Path(path).read_text())
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    with contextlib.ExitStack() as stack:
        tpu = resolver = None
        if request["mesh"]:
            from support.simulated_tpu.runtime import SimulatedTPU, simulated

            tpu = SimulatedTPU(tuple(request["mesh"]), request["hosts"], compile=request["compile"])
            resolver = _resolver(request, tpu)
            stack.enter_context(simulated(tpu))
        else:
            devices.split_cpu(request["replicas"])
        answer = {}
        for name in request["scenarios"]:
            first = len(tpu.clusters) if tpu else 0
            if tpu:
                tpu.moves_to_host = name in MOVES_TO_HOST
            answer[name] = run_scenario(
                name,
                on_tpu=tpu is not None,
                cluster=resolver,
                cores_per_replica=request["cores_per_replica"],
                hosts=request["hosts"],
            )
            made = tpu.clusters[first:] if tpu else []
            answer[name]["clusters"] = [_described(cluster) for cluster in made]
            for i, cluster in enumerate(made):
                if cluster.module:
                    directory = pathlib.Path(request["answer"]).parent
                    module_cache.store(directory, f"{name}.{i}", cluster.module)
        pathlib.Path(request["answer"]).write_text(json.dumps(answer))
    # In-process servers cannot be stopped, and would be waited for.
    os._exit(0)


def _resolver(request: dict[str, Any], tpu: Any) -> Any:
    addresses = request["addresses"]
    if not addresses and tpu.hosts == 1:
        devices.split_cpu(tpu.cores_of_host + 1)
        return tf.distribute.cluster_resolver.TPUClusterResolver("local")
    if not addresses:
        addresses = servers.start_here(tpu.hosts, tpu.cores_of_host)
    listed = ",".join(f"grpc://{address}" for address in addresses)
    return tf.distribute.cluster_resolver.TPUClusterResolver(listed, job_name="worker")


def run_scenario(name: str, **fields: Any) -> dict[str, Any]:
    """What it saw, or the error that ended it; `fields` are those of its `Run`."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(directory=pathlib.Path(directory), **fields)
        try:
            SCENARIOS[name](run)
            return {"seen": run.seen}
        except Exception:
            return {"error": traceback.format_exc()}


def _described(cluster: Any) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "replicas": cluster.replicas,
        "on_host": sorted(cluster.on_host),
        "compiled": cluster.module is not None,
    }


if __name__ == "__main__":
    main(sys.argv[1])
