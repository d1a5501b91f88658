"""Workers that meet in threads; one that is lost, a stranger and a slow one are plain sockets."""

import asyncio
import concurrent.futures
import contextlib
import os
import re
import signal
import socket
import threading
import time

import pytest
from support.callers import Caller, call, reset
from support.ports import free_ports

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.cluster import rendezvous

LONG = 30.0
SECRET = environment.SECRET_VARIABLE


@pytest.fixture
def pool():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        yield pool


def cluster(count=2, host="localhost"):
    return [f"{host}:{port}" for port in free_ports(count)]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_workers_meet(host, pool):
    addresses = cluster(4, host)
    for found in [pool.submit(rendezvous.meet, addresses, i, LONG) for i in (3, 1, 0, 2)]:
        assert found.result() is None


def test_who_waits_alone_names_the_missing():
    addresses = cluster(3)
    with pytest.raises(rendezvous.MissingWorkersError, match=f"{addresses[1]}, {addresses[2]}"):
        rendezvous.meet(addresses, 0, 0.2)
    with pytest.raises(rendezvous.MissingWorkersError, match=addresses[0]):
        rendezvous.meet(addresses, 2, 0.2)


def test_a_taken_port_is_an_error():
    [address] = cluster(1)
    with socket.create_server(("localhost", int(address.rpartition(":")[2]))):
        with pytest.raises(OSError, match="in use"):
            rendezvous.meet([address, "localhost:1"], 0, LONG)


def test_strangers_harm_nobody(pool):
    addresses = cluster()
    chief = pool.submit(rendezvous.meet, addresses, 0, LONG)
    slow = call(addresses[0])
    slow.sendall(b"t")  # and no more: it has a few seconds, in which others are heard
    for _ in range(20):
        reset(call(addresses[0]))
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x00\xff\n", b"\n", b"tpu_estimator_compat 1\n"):
        with call(addresses[0]) as stranger:
            stranger.sendall(said)
            greeting, *rest = stranger.makefile("rb").readlines()
            assert greeting.startswith(b"tpu_estimator_compat ")
            assert rest == ([b"refused\n"] if said.startswith(b"tpu") else [])
    with call(addresses[0]) as stranger:
        stranger.sendall(b"x" * 100_000)
        with contextlib.suppress(ConnectionResetError):
            assert len(stranger.makefile("rb").readlines()) == 1
    started = time.monotonic()
    worker = pool.submit(rendezvous.meet, addresses, 1, LONG)
    assert chief.result() is worker.result() is None
    assert time.monotonic() - started < rendezvous._PATIENCE
    slow.close()


def send_slowly(connection, data):
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def test_a_slow_one_has_one_deadline(pool, monkeypatch):
    monkeypatch.setattr(rendezvous, "_PATIENCE", 0.5)
    addresses = cluster()
    chief = pool.submit(rendezvous.meet, addresses, 0, LONG)
    with call(addresses[0]) as slow:
        with pytest.raises(OSError, match=r"reset|pipe"):
            send_slowly(slow, b"t" * 100)
    assert not chief.done()
    rendezvous.meet(addresses, 1, LONG)
    chief.result()


def test_one_that_is_started_again_takes_its_place(pool):
    addresses = cluster(3)
    chief = pool.submit(rendezvous.meet, addresses, 0, LONG)
    before = Caller(addresses, 1)
    again = pool.submit(rendezvous.meet, addresses, 1, LONG)
    assert " ".join(before.hears()).endswith("has called as the same task")
    before.dies()
    rendezvous.meet(addresses, 2, LONG)
    assert again.result() is chief.result() is None


def test_two_processes_of_one_task_do_not_fight(pool):
    addresses = cluster(3)
    chief = pool.submit(rendezvous.meet, addresses, 0, LONG)
    twins = [pool.submit(rendezvous.meet, addresses, 1, LONG) for _ in range(2)]
    [ended], _ = concurrent.futures.wait(twins, return_when="FIRST_COMPLETED")
    assert "a later process, at" in str(ended.exception())
    rendezvous.meet(addresses, 2, LONG)
    assert chief.result() is None
    assert sorted(str(each.exception()) for each in twins)[0] == "None"


def test_one_that_is_lost_after_its_call_is_waited_for(pool):
    addresses = cluster(3)
    chief = pool.submit(rendezvous.meet, addresses, 0, LONG)
    Caller(addresses, 1).dies()
    other = pool.submit(rendezvous.meet, addresses, 2, LONG)
    time.sleep(0.7)
    assert not chief.done()
    assert not other.done()
    rendezvous.meet(addresses, 1, LONG)
    assert chief.result() is other.result() is None


def test_one_that_is_lost_is_named_as_missing(pool):
    addresses = cluster(3)
    chief = pool.submit(rendezvous.meet, addresses, 0, 1.0)
    Caller(addresses, 1).dies()
    with pytest.raises(rendezvous.MissingWorkersError, match=f"{addresses[1]}, {addresses[2]}"):
        chief.result()


def test_a_worker_waits_for_a_chief_that_is_started_again(pool):
    addresses = cluster()
    worker = pool.submit(rendezvous.meet, addresses, 1, LONG)
    host, _, port = addresses[0].rpartition(":")
    with socket.create_server((host, int(port))) as before:
        connection, _ = before.accept()
        reset(connection)
    assert rendezvous.meet(addresses, 0, LONG) is worker.result() is None


def of_another_job(addresses, patch):
    return [*addresses, "localhost:1"]


def of_another_version(addresses, patch):
    patch.setattr(environment, "version", lambda: "0.1")
    return addresses


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (of_another_job, "another cluster in TF_CONFIG"),
        (of_another_version, "another version of tpu_estimator_compat; the chief has"),
    ],
    ids=["job", "version"],
)
def test_others_are_refused(monkeypatch, other, reason):
    """A worker hears why; the chief says so as well when it has waited in vain."""
    addresses = cluster()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        chief = pool.submit(rendezvous.meet, addresses, 0, 1.0)
        call(addresses[0]).close()
        with monkeypatch.context() as patch, pytest.raises(rendezvous.RefusedError) as refused:
            rendezvous.meet(other(addresses, patch), 1, LONG)
        with pytest.raises(rendezvous.MissingWorkersError) as missing:
            chief.result()
    assert re.search(rf"refused this worker: .*{re.escape(reason)}", str(refused.value))
    assert re.search(rf"Refused a worker at \S+: .*{re.escape(reason)}", str(missing.value))


def test_a_worker_with_another_secret_is_refused(monkeypatch, pool):
    addresses = cluster()
    chief = pool.submit(rendezvous.meet, addresses, 0, 1.0)
    with call(addresses[0]) as worker, worker.makefile("rb") as lines:
        _, nonce = lines.readline().decode().split()
        with monkeypatch.context() as patch:
            patch.setenv(environment.SECRET_VARIABLE, "a guess")
            said = rendezvous.introduction(addresses, 1, nonce)
        worker.sendall(" ".join(said).encode() + b"\n")
        assert lines.readlines() == [b"refused\n"]
    with pytest.raises(rendezvous.MissingWorkersError, match=f"another {SECRET}") as missing:
        chief.result()
    assert "a guess" not in str(missing.value)


def test_a_recorded_introduction_is_worth_nothing(pool):
    addresses = cluster(3)
    chief = pool.submit(rendezvous.meet, addresses, 0, LONG)
    worker = Caller(addresses, 1)
    with call(addresses[0]) as stranger:
        stranger.sendall(worker.said)
        assert stranger.makefile("rb").readlines()[1:] == [b"refused\n"]
    rendezvous.meet(addresses, 2, LONG)
    assert worker.hears() == ["go"]
    assert chief.result() is None


def pretend(addresses, said):
    """Answers a worker's call at the chief's port; returns at the end of the connection."""
    host, _, port = addresses[0].rpartition(":")
    with socket.create_server((host, int(port))) as server:
        connection, _ = server.accept()
        with connection:
            connection.sendall(said)
            connection.makefile("rb").readline()


GREETING = b"tpu_estimator_compat 00\n"


@pytest.mark.parametrize("said", [b"refused go away\n", b"go home\n", GREETING, b"x" * 1000, b""])
def test_a_worker_believes_no_other_program(said, pool, monkeypatch):
    monkeypatch.setattr(rendezvous, "_PATIENCE", 0.5)
    addresses = cluster()
    worker = pool.submit(rendezvous.meet, addresses, 1, LONG)
    pretend(addresses, said)
    assert rendezvous.meet(addresses, 0, LONG) is worker.result() is None


@pytest.mark.parametrize("word", ["go", "refused another cluster", "present"])
def test_a_worker_believes_no_recorded_chief(word, pool):
    addresses = cluster()
    proof = rendezvous._proof("chief", "00", word.split())
    worker = pool.submit(rendezvous.meet, addresses, 1, 1.0)
    pretend(addresses, GREETING + f"{proof} {word}\n".encode())
    with pytest.raises(rendezvous.MissingWorkersError, match=f"does not prove .* same {SECRET}"):
        worker.result()


def test_only_the_named_host_is_listened_at(pool):
    port = free_ports(1)[0]
    addresses = [f"127.0.0.1:{port}", "127.0.0.1:1"]
    waiting = pool.submit(rendezvous.meet, addresses, 0, 1.0)
    call(addresses[0]).close()
    for other in ("127.0.0.2", "::1"):
        with pytest.raises(OSError), socket.create_connection((other, port), 1):
            pass
    with pytest.raises(rendezvous.MissingWorkersError):
        waiting.result()


def test_ctrl_c_ends_the_wait():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a foreground process
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            rendezvous.meet(cluster(), 0, LONG)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < LONG / 2


def test_within_a_notebook_whose_loop_runs(pool):
    addresses = cluster()
    worker = pool.submit(rendezvous.meet, addresses, 1, LONG)

    async def cell():
        rendezvous.meet(addresses, 0, LONG)

    asyncio.run(cell())
    worker.result()
