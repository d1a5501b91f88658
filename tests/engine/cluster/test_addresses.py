import logging
import socket

import pytest

from tpu_estimator_compat.engine.cluster import addresses


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:1", ("localhost", 1)),
        ("10.0.0.7:2222", ("10.0.0.7", 2222)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_host_and_port(address, expected):
    assert addresses.split(address) == expected


@pytest.mark.parametrize("address", ["host", "host:", ":2222", "::1:2222", "host:http", "host:0"])
def test_addresses_without_a_port_are_refused(address):
    with pytest.raises(ValueError, match=f"TF_CONFIG names the address '{address}'"):
        addresses.check(["localhost:1234", address])


def test_one_address_for_two_workers_is_refused():
    with pytest.raises(ValueError, match="'localhost:1' for several workers"):
        addresses.check(["localhost:1", "localhost:2", "localhost:1"])


@pytest.mark.parametrize("own", ["localhost:1234", "127.0.0.1:1234", "[::1]:1234"])
def test_a_host_of_this_machine_is_listened_at(own):
    assert addresses.to_listen([own, "elsewhere:1"]) == addresses.split(own)[0]


@pytest.fixture
def hosts(monkeypatch):
    """Names and addresses, as /etc/hosts has them."""
    found = {}

    def getaddrinfo(host, port, **unused):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found.get(host, host), port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return found


def test_a_name_that_only_this_machine_takes_for_itself(hosts, caplog):
    hosts["chief"] = "127.0.1.1"
    with caplog.at_level(logging.WARNING):
        assert addresses.to_listen(["chief:1234", "other:1234"]) is None
    assert "chief is 127.0.1.1 here, which other machines do not reach" in caplog.text
    assert addresses.to_listen(["chief:1234", "chief:1235"]) == "chief"


def test_a_service_that_forwards(hosts, caplog):
    hosts["service"] = "192.0.2.1"
    with caplog.at_level(logging.WARNING):
        assert addresses.to_listen(["service:1234", "other:1234"]) is None
    assert "service is no address of this machine" in caplog.text
    assert "port 1234 is open in all networks" in caplog.text
