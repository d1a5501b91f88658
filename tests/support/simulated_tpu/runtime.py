"""The runtime of a simulated TPU: what TensorFlow's TPU code asks the hardware, answered by CPUs.

TensorFlow's Python runs unmodified: TPUClusterResolver, experimental_connect_to_cluster,
initialize_tpu_system, Topology, DeviceAssignment, TPUStrategy and its variables, input, and
`tpu.replicate` with all that it puts into a graph. Replaced is only what hardware does, or the
passes that the TPU's runtime makes over a graph:

* the list of cores: logical CPU i + 1 of a machine stands for its core i, CPU 0 for the host;
* the topology that initialization answers with;
* the rewrite of a replicated computation (`rewrite`), after a look at it (`checks`).

What it cannot show: kernels, numerics, random streams and memory of a TPU, spatial partitioning
(whole tensors are computed), and how long anything takes.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.tpu import topology_pb2
from tensorflow.python.distribute import tpu_strategy
from tensorflow.python.eager import context
from tensorflow.python.framework import auto_control_deps, func_graph, ops
from tensorflow.python.tpu import tpu, tpu_replication, tpu_system_metadata

from support.simulated_tpu import checks
from support.simulated_tpu.devices import cpu_name, tpu_name
from support.simulated_tpu.rewrite import Cluster, Expansion


@dataclasses.dataclass
class SimulatedTPU:
    """What the simulated TPU is, and what it has seen.

    Attributes:
      mesh_shape: chips in x, y and z, and cores of a chip, of all hosts together.
      hosts: machines, which share the chips evenly.
      compile: whether XLA compiles every computation.
      strict: whether what a TPU would refuse is an error here, too; else it is noted.
      moves_to_host: whether ops that no core has a kernel for are moved to the host, as TensorFlow
        does under soft placement ("automatic outside compilation"); else they are problems.
      clusters: the replicated computations, in the order in which they were built.
    """

    mesh_shape: tuple[int, int, int, int]
    hosts: int = 1
    compile: bool = True
    strict: bool = True
    moves_to_host: bool = False
    clusters: list[Cluster] = dataclasses.field(default_factory=list)

    @property
    def cores_of_host(self) -> int:
        return int(np.prod(self.mesh_shape)) // self.hosts

    def topology(self) -> bytes:
        columns, rows, layers, of_chip = self.mesh_shape
        if rows % self.hosts:
            raise ValueError(f"{rows} rows of chips cannot be shared by {self.hosts} hosts")
        proto = topology_pb2.TopologyProto(
            mesh_shape=self.mesh_shape,
            num_tasks=self.hosts,
            num_tpu_devices_per_task=self.cores_of_host,
        )
        own = rows // self.hosts
        for host in range(self.hosts):
            for core in range(self.cores_of_host):
                chip, within = divmod(core, of_chip)
                rest, x = divmod(chip, columns)
                z, y = divmod(rest, own)
                assert z < layers
                proto.device_coordinates.extend([x, host * own + y, z, within])
        return proto.SerializeToString()


@contextlib.contextmanager
def simulated(simulation: SimulatedTPU) -> Iterator[SimulatedTPU]:
    """Within, TensorFlow finds `simulation` where it would find a TPU.

    Enter it before TensorFlow is used eagerly, once the logical CPUs are set: `devices.split_cpu`.
    One process, one simulation at a time: the patches are global.
    """
    with contextlib.ExitStack() as stack:

        def patch(owner: Any, name: str, new: Any) -> Any:
            old = getattr(owner, name)
            setattr(owner, name, new)
            stack.callback(setattr, owner, name, old)
            return old

        _patch_devices(patch, simulation)
        _patch_strategy(patch)
        packs = _patch_packed_variables(patch)
        _patch_replication(patch, simulation, packs)
        yield simulation


Patch = Callable[[Any, str, Any], Any]


def _patch_devices(patch: Patch, simulation: SimulatedTPU) -> None:
    real_config = tpu_system_metadata.config

    class Config:
        def __getattr__(self, name: str) -> Any:
            return getattr(real_config, name)

        @staticmethod
        def list_logical_devices(kind: str | None = None) -> list[Any]:
            found = []
            for device in real_config.list_logical_devices():
                core = tpu_name(device.name) if device.device_type == "CPU" else None
                if core is None:
                    found.append(device)
                elif int(core.rpartition(":")[2]) < simulation.cores_of_host:
                    found.append(context.LogicalDevice(core, "TPU"))
            return [d for d in found if kind in (None, d.device_type)]

    def list_physical_devices(kind: str | None = None) -> list[Any]:
        if kind != "TPU":
            return physical(kind)
        names = [f"/physical_device:TPU:{i}" for i in range(simulation.cores_of_host)]
        return [context.PhysicalDevice(name, "TPU") for name in names]

    def system_device(job: str | None) -> str:
        return "/device:CPU:0" if job is None else f"/job:{job}/device:CPU:0"

    patch(tpu_system_metadata, "config", Config())
    physical = patch(tf.config, "list_physical_devices", list_physical_devices)
    patch(tpu, "initialize_system", lambda **unused: tf.constant(simulation.topology()))
    patch(tpu, "_tpu_system_device_name", system_device)


def _patch_strategy(patch: Patch) -> None:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        self._tpu_devices = np.vectorize(cpu_name, otypes=[object])(self._tpu_devices)
        table = self._device_input_worker_devices
        for host, cores in table.items():
            table[host] = [cpu_name(core) for core in cores]

    real = patch(tpu_strategy.TPUExtended, "__init__", init)


def _patch_packed_variables(patch: Patch) -> dict[str, list[Any]]:
    """Notes who is behind the handle of a replicated variable: one variable for each replica."""
    packs: dict[str, list[Any]] = {}

    def handle_of(
        self: Any,
        name: str,
        handle_id: str,
        vars_: Any,
        is_mirrored: bool = False,
        is_packed: bool = False,
    ) -> Any:
        parts = list(vars_[0]._distributed_variables) if is_packed else list(vars_)
        handle = real(self, name, handle_id, parts[:1], is_mirrored, True)
        packs[f"{id(handle.graph)}/{handle.name}"] = parts
        return handle

    real = patch(tpu_replication.TPUReplicateContext, "get_replicated_var_handle", handle_of)
    return packs


def _patch_replication(patch: Patch, simulation: SimulatedTPU, packs: dict[str, list[Any]]) -> None:
    """What a TPU's passes do with the graph that TensorFlow has built for it."""

    def split_compile_and_replicate(
        computation: Any, inputs: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if not isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy):
            return real(computation, inputs, *args, **kwargs)  # a graph to be exported
        outer = ops.get_default_graph()
        program = func_graph.FuncGraph(f"{outer.name}_tpu")
        with program.as_default(), auto_control_deps.AutomaticControlDependencies() as order:
            _, outputs = real(computation, inputs, *args, **kwargs)
            flat = tf.nest.flatten(outputs, expand_composites=True)
            wanted = [order.mark_as_return(t) if isinstance(t, tf.Tensor) else t for t in flat]
        expansion = Expansion(
            outer, program, tf.distribute.get_strategy(), packs=packs, replicas=len(inputs or [[]])
        )
        cluster = expansion.cluster
        simulation.clusters.append(cluster)
        checks.check(expansion, moves_to_host=simulation.moves_to_host)
        if simulation.compile:
            checks.compile(expansion)
        if simulation.strict and cluster.problems:
            raise tf.errors.InvalidArgumentError(
                None, None, "(simulated TPU) " + "; ".join(cluster.problems)
            )
        values = expansion.build(wanted)
        return [None, tf.nest.pack_sequence_as(outputs, values, expand_composites=True)]

    real = patch(tpu, "split_compile_and_replicate", split_compile_and_replicate)
