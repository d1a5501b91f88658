"""Surroundings of the scenarios: a simulated TPU, logical CPUs, or JAX's devices, by the settings.

The settings:
  configuration: name of the simulated TPU of `CONFIGURATIONS`; or
  replicas: how many logical CPUs; or
  jax: true; then a scenario's name is `configuration.name`.
  compile: whether XLA compiles what cores run.

What a scenario returns are the clusters of its cores; their programs go to `out`, as
SCENARIO.NUMBER.module.
"""

import contextlib
import functools
import importlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from support.simulated_tpu import devices

from tpu_estimator_compat.engine.jax.lowering import module_cache

from . import servers
from .configurations import CONFIGURATIONS, ON_JAX, Configuration
from .model import MOVES_TO_HOST, SCENARIOS, Run

Scenarios = Callable[[str], Callable[..., Any]]


@contextlib.contextmanager
def scenarios(side: str, settings: dict[str, Any], out: pathlib.Path) -> Iterator[Scenarios]:
    del side
    if settings.get("configuration"):
        given = CONFIGURATIONS[settings["configuration"]]
        runtime = importlib.import_module("support.simulated_tpu.runtime")
        tpu = runtime.SimulatedTPU(given.mesh, given.hosts, compile=settings["compile"])
        resolver = _resolver(tpu, remote=given.remote)
        with runtime.simulated(tpu):
            yield functools.partial(_on_cores, given, tpu, resolver, out)
    elif settings.get("jax"):
        jax = importlib.import_module("jax")
        jax.config.update("jax_num_cpu_devices", max(each.cores for each in ON_JAX.values()))
        yield _on_jax
    else:
        devices.split_cpu(settings["replicas"])
        yield lambda name: functools.partial(_run, name, on_tpu=False, cluster=None)


def _run(name: str, model_dir: str, record: Any, **fields: Any) -> None:
    SCENARIOS[name](Run(model_dir=model_dir, see=record, **fields))


def _on_jax(path: str) -> Callable[..., Any]:
    configuration, _, name = path.partition(".")
    return functools.partial(
        _run,
        name,
        on_tpu=False,
        cluster=None,
        cores_per_replica=ON_JAX[configuration].cores_per_replica,
        jax_replicas=ON_JAX[configuration].replicas,
    )


def _on_cores(
    given: Configuration, tpu: Any, resolver: Any, out: pathlib.Path, name: str
) -> Callable[..., Any]:
    def scenario(model_dir: str, record: Any) -> list[dict[str, Any]]:
        first, tpu.moves_to_host = len(tpu.clusters), name in MOVES_TO_HOST
        fields = {"cores_per_replica": given.cores_per_replica, "hosts": given.hosts}
        _run(name, model_dir, record, on_tpu=True, cluster=resolver, **fields)
        for i, cluster in enumerate(tpu.clusters[first:]):
            if cluster.module:
                module_cache.store(out, f"{name}.{i}", cluster.module)
        return [_described(cluster) for cluster in tpu.clusters[first:]]

    return scenario


def _resolver(tpu: Any, remote: bool) -> Any:
    if tpu.hosts == 1:
        devices.split_cpu(tpu.cores_of_host + 1)
        return tf.distribute.cluster_resolver.TPUClusterResolver("local")
    addresses = servers.start(tpu.hosts, tpu.cores_of_host, remote=remote)
    listed = ",".join(f"grpc://{address}" for address in addresses)
    return tf.distribute.cluster_resolver.TPUClusterResolver(listed, job_name="worker")


def _described(cluster: Any) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "replicas": cluster.replicas,
        "on_host": sorted(cluster.on_host),
        "compiled": cluster.module is not None,
    }
