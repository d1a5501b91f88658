"""The machines of a TPU: TensorFlow's own gRPC servers, here or in processes of their own."""

import os
import socket
import time

import tensorflow as tf


def start(hosts: int, cores: int, *, remote: bool) -> list[str]:
    addresses = _free_addresses(hosts)
    for host in range(hosts):
        if remote:
            _fork(addresses, host, cores)
        else:
            _server(addresses, host, cores)
    return addresses


def _free_addresses(count: int) -> list[str]:
    """Addresses on this machine that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    found = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return found


def _fork(addresses: list[str], host: int, cores: int) -> None:
    """Returns when the server is up; it ends with this process."""
    parent = os.getpid()
    up, told = os.pipe()
    if os.fork():
        os.close(told)
        assert os.read(up, 1), f"the server of host {host} ended"
        os.close(up)
        return
    server = _server(addresses, host, cores)
    os.write(told, b"1")
    while os.getppid() == parent:
        time.sleep(0.2)
    del server
    os._exit(0)


def _server(addresses: list[str], host: int, cores: int) -> tf.distribute.Server:
    config = tf.compat.v1.ConfigProto(device_count={"CPU": cores + 1, "GPU": 0})
    return tf.distribute.Server(
        tf.train.ClusterSpec({"worker": addresses}),
        job_name="worker",
        task_index=host,
        config=config,
    )
