"""Real processes of a cluster, some of which are lost or no part of it, while they join."""

import contextlib
import functools
import pathlib
import signal
import socket

import pytest
from support import cluster as clusters
from support.callers import Caller, call, reset
from support.cluster import wait_for

pytestmark = pytest.mark.slow

RUNTIMES = ["tensorflow", "jax"]
Cluster = functools.partial(
    clusters.Cluster, script=pathlib.Path(__file__).with_name("joining_worker.py")
)


def start(cluster, runtime, *only, seconds=120):
    cluster.start(
        runtime,
        only=list(only),
        ports=cluster.ports or None,
        folder=str(cluster.directory),
        seconds=seconds,
    )
    return [f"localhost:{port}" for port in cluster.ports]


def let_go(cluster):
    (cluster.directory / "go").touch()
    return [process.result()["error"] for process in cluster.processes]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_scanners_and_a_worker_that_is_started_again(runtime, tmp_path):
    with Cluster(tmp_path, 3) as cluster:
        addresses = start(cluster, runtime, 0)
        for _ in range(5):
            reset(call(addresses[0]))
        start(cluster, runtime, 1)
        wait_for(lambda: "for 120 s at most" in cluster.processes[1].log)
        with cluster.processes[1].popen as lost:
            lost.send_signal(signal.SIGKILL)
            lost.wait(10)
        del cluster.processes[1]
        start(cluster, runtime, 1, 2)
        assert let_go(cluster) == ["", "", ""]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_worker_that_is_lost_at_the_last_moment(runtime, interrupted, tmp_path):
    with Cluster(tmp_path, 2) as cluster:
        addresses = start(cluster, runtime, 0, seconds=10)
        worker = Caller(addresses)
        assert worker.hears()[0] == "go"
        worker.dies()
        [chief] = cluster.processes
        wait_for(lambda: "this process ends" in chief.log)
        if interrupted:
            chief.popen.send_signal(signal.SIGINT)
            assert chief.wait(15) == -signal.SIGINT
        elif runtime == "jax":
            assert chief.wait(60) == -signal.SIGABRT
            assert "This most likely indicates that another task died" in chief.log
        else:
            assert chief.wait(60) == 1
            assert (
                "All workers are present and join now. If that takes longer than 20 s" in chief.log
            )
            assert "Timeout (0:00:20)!" in chief.log


def test_the_chiefs_ports(tmp_path):
    """JAX's coordinator is where TF_CONFIG says; TensorFlow's server is everywhere."""
    for runtime, everywhere in [("jax", False), ("tensorflow", True)]:
        folder = tmp_path / runtime
        folder.mkdir()
        with Cluster(folder, 2) as cluster:
            start(cluster, runtime, 0, 1)
            wait_for(lambda each=cluster: all(p.result_path.exists() for p in each.processes))
            port = cluster.ports[0]
            with contextlib.closing(call(f"localhost:{port}")):
                pass
            assert is_open("127.0.0.2", port) == everywhere
            assert let_go(cluster) == ["", ""]


def is_open(host, port):
    try:
        with socket.create_connection((host, port), 5):
            return True
    except OSError:
        return False


def test_an_address_without_a_port(tmp_path, monkeypatch):
    with Cluster(tmp_path, 2) as cluster:
        monkeypatch.setattr(clusters, "free_ports", lambda count: ["", 1])
        start(cluster, "tensorflow", 1)
        [worker] = cluster.processes
        assert "TF_CONFIG names the address 'localhost:'" in worker.result()["error"]
