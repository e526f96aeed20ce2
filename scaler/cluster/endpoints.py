"""Pods by address, without a cluster: only where the operator allows it, and only by IP address."""

from __future__ import annotations

import time
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from scaler.cluster.model import Phase, Pod, Workload
from scaler.quoting import one_line, quoted

Network = IPv4Network | IPv6Network
MOST_ENDPOINTS = 1000
"""Each is asked at every tick, and a scaler reads some four thousand pods a second in all."""
_Address = tuple[IPv4Address | IPv6Address, int]


class EndpointsError(ValueError):
    """`problems` has one line for each fault, naming key, value and what is right."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def parse_networks(text: str) -> tuple[Network, ...]:
    """Read `--allow-endpoints`: `10.0.0.0/8,fd00::/8`. Raises EndpointsError with every problem."""
    networks: list[Network] = []
    problems: list[str] = []
    for part in text.split(","):
        try:
            networks.append(ip_network(part.strip()))
        except ValueError as error:
            right = "; right is a range such as 10.0.0.0/8 or fd00::/8"
            problems.append(f"--allow-endpoints: {quoted(part.strip())} is wrong ({one_line(str(error))}){right}")
    if problems:
        raise EndpointsError(problems)
    return tuple(networks)


class FixedEndpoints:
    """A Discovery whose pods are always the same addresses, all of them ready."""

    def __init__(self, endpoints: str, allowed: Sequence[Network], *, minimum: int = 1, maximum: int = 100) -> None:
        """Read `10.0.0.7:8000,[fd00::7]:8000`. Raises EndpointsError with every problem at once."""
        started = time.time()
        self._pods = tuple(_pod(host, port, started) for host, port in _parse(endpoints, allowed))
        self._minimum = minimum
        self._maximum = maximum

    def workload(self, namespace: str, name: str) -> Workload:  # noqa: ARG002 the same for every name
        """Return the endpoints as a workload of which as many replicas are asked for as there are endpoints."""
        return Workload(
            requested=len(self._pods),
            current=len(self._pods),
            pods=self._pods,
            minimum=self._minimum,
            maximum=self._maximum,
            seen_at=time.time(),
        )


def _parse(text: str, allowed: Sequence[Network]) -> list[_Address]:
    parts = text.split(",")
    if len(parts) > MOST_ENDPOINTS:
        many = f"endpoints: {len(parts):,} addresses are wrong (every one is asked at every tick)"
        raise EndpointsError([f"{many}; right are {MOST_ENDPOINTS:,} or fewer"])
    found: dict[_Address, None] = {}
    problems: list[str] = []
    for part in parts:
        endpoint = part.strip()
        try:
            address = _address(endpoint)
            _check(address, allowed)
            if address in found:
                raise ValueError("it stands there twice; leave one out")
        except ValueError as error:
            problems.append(f"endpoints: {quoted(endpoint)} is wrong: {error}")
        else:
            found[address] = None
    if problems:
        raise EndpointsError(problems)
    return list(found)


def _address(endpoint: str) -> _Address:
    host, colon, port = endpoint.rpartition(":")
    if not colon or not host or host.count("[") != host.count("]"):
        raise ValueError("right is address:port, such as 10.0.0.7:8000 or [fd00::7]:8000")
    if not port.isascii() or not port.isdigit() or len(port) > 5 or not 0 < int(port) < 65536:
        raise ValueError("the port must be a number from 1 to 65535")
    bracketed = host.startswith("[") and host.endswith("]")
    if ":" in host and not bracketed:
        raise ValueError(f"an IPv6 address stands in brackets; right is [{one_line(host)}]:{port}")
    try:
        address = ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        raise ValueError("names are not looked up; right is an IP address and a port, such as 10.0.0.7:8000") from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise ValueError("an address with a zone is of this machine only; right is one without %")
        if address.ipv4_mapped is not None:  # the same place under another name must meet the same rule
            return address.ipv4_mapped, int(port)
    elif bracketed:
        raise ValueError(f"only an IPv6 address stands in brackets; right is {address}:{port}")
    return address, int(port)


def _check(address: _Address, allowed: Sequence[Network]) -> None:
    if not any(address[0] in network for network in allowed):
        ranges = ", ".join(map(str, allowed)) or "none"
        raise ValueError(
            f"the operator does not allow it; right is an address within {ranges} (the server's --allow-endpoints)"
        )


def _pod(host: IPv4Address | IPv6Address, port: int, started: float) -> Pod:
    name = f"[{host}]:{port}" if host.version == 6 else f"{host}:{port}"
    return Pod(
        name=name,
        uid=name,
        phase=Phase.READY,
        since=started,
        created=started,
        ready_at=started,
        ip=str(host),
        ports={"metrics": port},
    )
