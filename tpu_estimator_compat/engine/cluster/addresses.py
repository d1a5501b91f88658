"""Addresses of a cluster's workers in TF_CONFIG, and the host at which this process listens."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from tensorflow.compat.v1 import logging

_FORM = 'write "host:port", or "[::1]:port" with an address of IPv6'


def split(address: str) -> tuple[str, int]:
    """The host, without IPv6 brackets, and the port of an address.

    Raises ValueError where it is not of the form host:port, with a port from 1 to 65535.
    """
    host, _, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not host.strip("[]") or not port.isdecimal() or (":" in host and not bracketed):
        raise ValueError(f"TF_CONFIG names the address {address!r}; {_FORM}.")
    if not 1 <= int(port) <= 65535:
        raise ValueError(
            f"TF_CONFIG names the address {address!r}; its port must be from 1 to 65535."
        )
    return host.strip("[]"), int(port)


def check(addresses: Sequence[str]) -> None:
    """Raises ValueError where an address has no port, or two workers have the same address."""
    for address in addresses:
        split(address)
        if addresses.count(address) > 1:
            raise ValueError(
                f"TF_CONFIG names the address {address!r} for several workers. Each listens at an "
                "address of its own: on one machine, give each another port."
            )


def to_listen(addresses: Sequence[str]) -> str | None:
    """The host at which this process, the first of `addresses`, listens; None for all interfaces.

    Listening at the address' own host keeps the port closed to other networks. Two kinds of host do
    not allow it: a host of another machine, such as a forwarding service, and, with workers on
    other machines, a host that /etc/hosts maps to a loopback address, as Debian does.
    """
    host, port = split(addresses[0])
    found = {str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    if not all(_is_here(each) for each in found):
        why = "is no address of this machine"
    elif host != "localhost" and host not in found and _are_elsewhere(found, addresses):
        why = f"is {', '.join(sorted(found))} here, which other machines do not reach"
    else:
        return host
    logging.warning(
        "%s %s. So port %d is open in all networks of this machine until the workers have met.",
        *(host, why, port),
    )
    return None


def _are_elsewhere(found: set[str], addresses: Sequence[str]) -> bool:
    """Whether `found` has only loopback addresses, while other workers have other hosts."""
    loops = all(address.startswith("127.") or address == "::1" for address in found)
    return loops and len({split(address)[0] for address in addresses}) > 1


def _is_here(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
