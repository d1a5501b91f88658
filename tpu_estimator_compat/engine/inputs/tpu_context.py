"""`params['context']`: describes the replicas to input_fn and model_fn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpu_estimator_compat.engine.inputs.input_mode import Invocation, TPUInputMode
from tpu_estimator_compat.engine.topology.computation_shapes import imagined_assignment


class TPUContext:
    """The hosts and replicas of the computation, as in the original's class of this name.

    It arrives in `params['context']` of input_fn and model_fn; users do not make it.

    Args:
      input_mode: divides the input among replicas.
      invocation: the input_fn call; None in model_fn.
    """

    def __init__(self, input_mode: TPUInputMode, invocation: Invocation | None = None):
        self._input_mode = input_mode
        self._topology = input_mode.topology
        self._invocation = invocation

    def _only_in_input_fn(self) -> Invocation:
        if self._invocation is None:
            raise RuntimeError("This TPUContext instance must not be called from model_fn.")
        return self._invocation

    def current_input_fn_deployment(self) -> tuple[str, int, int, int]:
        """The position of this input_fn call among all calls.

        Returns:
          The host's device, the 0-based index of this call, the number of calls, and the number of
          replicas that this call feeds.

        Raises:
          RuntimeError: called from model_fn.
        """
        call, mode = self._only_in_input_fn(), self._input_mode
        device = self.tpu_host_placement_function(call.host)
        return device, call.index, mode.calls, max(1, self.num_replicas // mode.calls)

    @property
    def num_replicas(self) -> int:
        """Number of replicas on all hosts."""
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
        return self._only_in_input_fn().host

    @property
    def num_of_replicas_per_host(self) -> int:
        """Number of replicas that each host feeds.

        Raises:
          ValueError: model parallelism is on.
        """
        if self._input_mode.tpu_config.num_cores_per_replica:
            raise ValueError("num_of_replicas_per_host is not supported for model_parallelism")
        return self._topology.replicas_per_host

    @property
    def device_assignment(self) -> Any:
        """The cores of each replica; None without `num_cores_per_replica`, as in the original.

        Without a TPU, an assignment to imagined cores in a line.

        Raises:
          RuntimeError: called from input_fn.
        """
        if self._invocation is not None:
            raise RuntimeError("This TPUContext instance must not be called from input_fn.")
        cores = self._input_mode.tpu_config.num_cores_per_replica
        given = getattr(self._topology.strategy.extended, "_device_assignment", None)
        if given is not None or not cores:
            return given
        return imagined_assignment(self.num_replicas, cores, self.num_hosts)

    def device_for_replica(self, replica_id: int) -> tuple[str, int]:
        """The host device and the device ordinal of a replica."""
        host, ordinal = divmod(replica_id, self._topology.replicas_per_host)
        return f"/task:{host}/device:CPU:0", ordinal

    @property
    def tpu_host_placement_function(self) -> Callable[..., str]:
        """A function from either `host_id` or `replica_id` to that host's CPU device."""

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
