"""The machines of a TPU: TensorFlow's own gRPC servers, here or in processes of their own."""

from __future__ import annotations

import json
import os
import socket
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf


def free_addresses(count: int) -> list[str]:
    """Addresses on this machine that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    found = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return found


def start_here(hosts: int, cores: int) -> list[str]:
    """Starts servers in this process; their addresses."""
    addresses = free_addresses(hosts)
    for host in range(hosts):
        server(addresses, host, cores)
    return addresses


def server(addresses: list[str], host: int, cores: int) -> tf.distribute.Server:
    """The server of one host, whose CPU is split into its own and its cores."""
    config = tf.compat.v1.ConfigProto(device_count={"CPU": cores + 1, "GPU": 0})
    return tf.distribute.Server(
        tf.train.ClusterSpec({"worker": addresses}),
        job_name="worker",
        task_index=host,
        config=config,
    )


if __name__ == "__main__":
    addresses, host, cores = json.loads(sys.argv[1])
    running = server(addresses, host, cores)
    print("up", flush=True)
    running.join()
