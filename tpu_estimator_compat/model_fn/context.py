"""`params['context']`: what input_fn and model_fn may ask about the replicas that they work for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpu_estimator_compat import topology as topology_lib
from tpu_estimator_compat.config import TPUConfig
from tpu_estimator_compat.topology import Topology


class TPUContext:
    """The configuration of the computation, as the original's class of this name.

    Not made by users: it arrives in `params['context']` of input_fn and model_fn.

    Args:
      mode: a `ModeKeys` value.
      topology: the replicas of this mode.
      tpu_config: says how input is deployed.
      invocation_index: 0-based index of the input_fn call; None in model_fn.
      host: 0-based index of the host that calls input_fn; None in model_fn.
    """

    def __init__(
        self,
        mode: str,
        topology: Topology,
        tpu_config: TPUConfig,
        invocation_index: int | None = None,
        host: int | None = None,
    ):
        self._mode = mode
        self._topology = topology
        self._tpu_config = tpu_config
        self._invocation_index = invocation_index
        self._host = host

    def _only_in_input_fn(self) -> tuple[int, int]:
        """The index of this input_fn call and its host."""
        if self._invocation_index is None or self._host is None:
            raise RuntimeError("This TPUContext instance must not be called from model_fn.")
        return self._invocation_index, self._host

    def current_input_fn_deployment(self) -> tuple[str, int, int, int]:
        """Which of the input_fn calls this is.

        Returns:
          The device of the host, the 0-based index of this call, the number of calls in all, and
          the number of replicas that this call feeds.

        Raises:
          RuntimeError: called from model_fn.
        """
        index, host = self._only_in_input_fn()
        topology = self._topology
        if topology_lib.is_per_core(self._mode, self._tpu_config):
            calls, fed = topology.num_replicas, 1
        elif topology_lib.is_broadcast(self._mode, self._tpu_config):
            calls, fed = 1, topology.num_replicas
        else:
            calls, fed = topology.num_hosts, topology.replicas_per_host
        return self.tpu_host_placement_function(host), index, calls, fed

    @property
    def num_replicas(self) -> int:
        """Number of replicas in all."""
        return self._topology.num_replicas

    @property
    def num_hosts(self) -> int:
        """Number of hosts that feed the replicas."""
        return self._topology.num_hosts

    @property
    def current_host(self) -> int:
        """0-based index of the host that calls input_fn.

        Raises:
          RuntimeError: called from model_fn.
        """
        return self._only_in_input_fn()[1]

    @property
    def num_of_replicas_per_host(self) -> int:
        """Number of replicas that each host feeds.

        Raises:
          ValueError: model parallelism is on.
        """
        if self._tpu_config.num_cores_per_replica:
            raise ValueError("num_of_replicas_per_host is not supported for model_parallelism")
        return self._topology.replicas_per_host

    @property
    def device_assignment(self) -> Any:
        """The strategy's device assignment; None without model parallelism or a TPU.

        Raises:
          RuntimeError: called from input_fn.
        """
        if self._invocation_index is not None:
            raise RuntimeError("This TPUContext instance must not be called from input_fn.")
        return getattr(self._topology.strategy.extended, "_device_assignment", None)

    def device_for_replica(self, replica_id: int) -> tuple[str, int]:
        """The host device and the device ordinal of a replica."""
        host, ordinal = divmod(replica_id, self._topology.replicas_per_host)
        return f"/task:{host}/device:CPU:0", ordinal

    @property
    def tpu_host_placement_function(self) -> Callable[..., str]:
        """A function from `host_id` or `replica_id`, one of them, to that host's CPU device."""

        def placement(host_id: int | None = None, replica_id: int | None = None) -> str:
            if (host_id is None) == (replica_id is None):
                raise RuntimeError(
                    "replica_id and host_id can have only one non-None value. "
                    f"Got replica_id={replica_id} and host_id={host_id}."
                )
            if replica_id is not None:
                host_id = replica_id // self._topology.replicas_per_host
            return f"/replica:0/task:{host_id}/device:CPU:0"

        return placement
