"""Tasks of a cluster with parameter servers that are killed, stopped or cannot start."""

import contextlib
import signal
import socket

import pytest
import tensorflow as tf
from support.parameter_servers.cluster import ServerCluster
from support.processes import wait_for

pytestmark = pytest.mark.slow

LAST = 150


@pytest.fixture
def cluster(forks, tmp_path):
    """One whose steps leave time to kill a task between them."""
    with ServerCluster(tmp_path, forks, "line", 1, max_steps=LAST, pause=0.02) as started:
        yield started


def ended(cluster, *names):
    for name in names:
        cluster.observed(name)
    assert LAST <= cluster.steps()[-1] < LAST + 10  # steps that others had begun


def test_a_killed_worker_goes_on_and_the_chief_does_not_wait(cluster):
    cluster.start("ps0", "ps1", "chief0")
    cluster.saves(0)
    cluster.start("worker0")
    cluster.says("worker0", "loss =")
    cluster.kill("worker0")
    step = cluster.steps()[-1]
    cluster.saves(step + 20)
    cluster.start("worker0")
    ended(cluster, "worker0", "chief0")
    assert "Restoring" not in cluster.log("worker0").read_text()


def test_a_killed_chief_restores_and_workers_go_on(cluster):
    """The checkpoint that is named last, which may not be the one that was being written."""
    cluster.start("ps0", "ps1", "chief0")
    cluster.saves(20)
    cluster.start("worker0")
    cluster.says("worker0", "loss =")
    cluster.kill("chief0")
    newest = tf.train.latest_checkpoint(cluster.folder / "model")
    cluster.start("chief0")
    ended(cluster, "chief0", "worker0")
    assert f"Restoring parameters from {newest}\n" in cluster.log("chief0").read_text()


def test_a_killed_server_stops_all_until_it_is_back(cluster):
    """Here the chief comes before the servers, too, and waits for them."""
    cluster.start("chief0", "worker0", "ps1")
    cluster.says("chief0", "Graph was finalized.")
    cluster.start("ps0")
    cluster.saves(20)
    cluster.kill("ps0")
    cluster.says("chief0", "An error was raised.")
    newest = tf.train.latest_checkpoint(cluster.folder / "model")
    cluster.start("ps0")
    ended(cluster, "chief0", "worker0")
    again = cluster.log("chief0").read_text().partition("An error was raised.")[2]
    assert f"Restoring parameters from {newest}\n" in again


def test_a_server_listens_everywhere_until_a_signal_ends_it(cluster):
    port = int(cluster.jobs["ps"][0].rpartition(":")[2])
    for number in (signal.SIGTERM, signal.SIGINT):
        cluster.start("ps0")
        cluster.says("ps0", "Start Tensorflow server.")
        wait_for(lambda: answers("127.0.0.2", port))
        cluster.kill("ps0", number)


def answers(host, port):
    with contextlib.suppress(OSError), socket.create_connection((host, port), 5):
        return True


def test_a_port_in_use_is_named(cluster):
    address = cluster.jobs["ps"][0]
    with socket.socket() as taken:
        taken.bind(("", int(address.rpartition(":")[2])))
        taken.listen()
        cluster.start("ps0")
        with pytest.raises(AssertionError, match="Could not start gRPC server"):
            cluster.observed("ps0")
    told = cluster.log("ps0").read_text()
    assert f"ps 0 of TF_CONFIG listens at the port of grpc://{address}." in told
