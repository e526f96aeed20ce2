from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaler.cluster.endpoints import EndpointsError, FixedEndpoints, parse_networks
from scaler.cluster.model import Phase

ALLOWED = parse_networks("10.0.0.0/8,fd00::/8")


def problems(endpoints: str) -> tuple[str, ...]:
    with pytest.raises(EndpointsError) as caught:
        FixedEndpoints(endpoints, ALLOWED)
    return caught.value.problems


def test_endpoints_are_ready_pods_with_a_metrics_port() -> None:
    workload = FixedEndpoints("10.0.0.7:8000, [fd00::7]:8001", ALLOWED, minimum=2, maximum=8).workload("ns", "name")
    assert [(pod.name, pod.ip, pod.ports, pod.phase) for pod in workload.pods] == [
        ("10.0.0.7:8000", "10.0.0.7", {"metrics": 8000}, Phase.READY),
        ("[fd00::7]:8001", "fd00::7", {"metrics": 8001}, Phase.READY),
    ]
    assert (workload.requested, workload.current, workload.minimum, workload.maximum) == (2, 2, 2, 8)


@pytest.mark.parametrize(
    ("endpoint", "right"),
    [
        ("vllm.default.svc:8000", "names are not looked up; right is an IP address and a port"),
        ("localhost:8000", "names are not looked up"),
        ("10.0.0.7", "right is address:port"),
        ("", "right is address:port"),
        (":8000", "right is address:port"),
        ("10.0.0.7:0", "from 1 to 65535"),
        ("10.0.0.7:65536", "from 1 to 65535"),
        ("10.0.0.7:http", "from 1 to 65535"),
        ("10.0.0.7:٣", "from 1 to 65535"),
        ("fd00::7:8000", r"right is \[fd00::7\]:8000"),
        ("[fd00::7:8000", "right is address:port"),
        ("[10.0.0.7]:8000", "right is 10.0.0.7:8000"),
        ("[fe80::1%eth0]:8000", "without %"),
        ("010.0.0.7:8000", "names are not looked up"),
        ("http://10.0.0.7:8000", r"an IPv6 address stands in brackets|names are not looked up"),
        ("192.168.0.1:8000", r"within 10.0.0.0/8, fd00::/8 \(the server's --allow-endpoints\)"),
        ("169.254.169.254:80", "the operator does not allow it"),
        ("127.0.0.1:8000", "the operator does not allow it"),
        ("[::ffff:192.168.0.1]:8000", "the operator does not allow it"),
        ("[::1]:8000", "the operator does not allow it"),
    ],
)
def test_wrong_endpoint_is_refused_with_what_would_be_right(endpoint: str, right: str) -> None:
    with pytest.raises(EndpointsError, match=right) as caught:
        FixedEndpoints(endpoint, ALLOWED)
    assert str(caught.value).startswith(f"endpoints: {endpoint!r} is wrong: ")


def test_every_wrong_endpoint_is_told_at_once() -> None:
    assert len(problems("10.0.0.7:8000,x:1,10.0.0.8,11.0.0.1:8000,10.0.0.7:8000")) == 4


def test_more_addresses_than_can_be_asked_at_every_tick_are_refused_in_one_line() -> None:
    addresses = [f"10.0.{i // 250}.{i % 250}:8000" for i in range(10_000)]
    assert problems(",".join(addresses)) == (
        "endpoints: 10,000 addresses are wrong (every one is asked at every tick); right are 1,000 or fewer",
    )
    assert len(FixedEndpoints(",".join(addresses[:1000]), ALLOWED).workload("ns", "name").pods) == 1000


def test_nothing_is_allowed_unless_the_operator_says_so() -> None:
    with pytest.raises(EndpointsError, match="right is an address within none"):
        FixedEndpoints("10.0.0.7:8000", ())


def test_mapped_address_is_the_ipv4_address_that_it_is() -> None:
    (pod,) = FixedEndpoints("[::ffff:10.0.0.7]:8000", ALLOWED).workload("ns", "name").pods
    assert pod.ip == "10.0.0.7"


@pytest.mark.parametrize("text", ["10.0.0.0", "10.0.0.0/8, fd00::/8", "0.0.0.0/0"])
def test_ranges_are_read(text: str) -> None:
    assert [str(network).removesuffix("/32") for network in parse_networks(text)] == text.split(", ")


@pytest.mark.parametrize("text", ["", "10.0.0.7/8", "10.0.0.0/33", "pods", "10.0.0.0/8,"])
def test_wrong_range_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(
        EndpointsError, match=r"^--allow-endpoints: .* is wrong .*; right is a range such as 10.0.0.0/8"
    ):
        parse_networks(text)


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)), st.integers(1, 65535))
def test_no_address_outside_the_ranges_is_ever_taken(address: IPv4Address | IPv6Address, port: int) -> None:
    text = f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    place = mapped or address
    if any(place in network for network in ALLOWED):
        assert FixedEndpoints(text, ALLOWED).workload("ns", "name").pods[0].ip == str(place)
    else:
        assert len(problems(text)) == 1
