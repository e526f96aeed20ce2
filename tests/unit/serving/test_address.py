"""Addresses as people write them."""

from __future__ import annotations

import pytest

from scaler.serving.address import Address


@pytest.mark.parametrize(
    ("text", "host", "port", "shown"),
    [
        ("127.0.0.1:9090", "127.0.0.1", 9090, "127.0.0.1:9090"),
        ("[::]:9090", "::", 9090, "[::]:9090"),
        ("[::1]:0", "::1", 0, "[::1]:0"),
        (":9090", "::", 9090, "[::]:9090"),
        ("localhost:80", "localhost", 80, "localhost:80"),
        (" 0.0.0.0:1 ", "0.0.0.0", 1, "0.0.0.0:1"),
    ],
)
def test_an_address_is_host_and_port(text: str, host: str, port: int, shown: str) -> None:
    address = Address.parse(text)
    assert (address.host, address.port, str(address)) == (host, port, shown)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9090",
        "localhost",
        "localhost:",
        "::1:9090",
        "[::1:9090",
        "a:b",
        "a:65536",
        "a:-1",
        "a:" + "9" * 5000,
        "a" * 100_000,
    ],
)
def test_what_is_no_address_is_quoted_beside_one_that_is_right(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no HOST:PORT, such as 127\.0\.0\.1:9090") as error:
        Address.parse(text)
    assert len(str(error.value)) < 200
