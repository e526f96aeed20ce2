"""Addresses as people write them in options: `[::]:9090`, `127.0.0.1:9090`, `:9090`."""

from __future__ import annotations

from dataclasses import dataclass

from scaler.quoting import quoted


@dataclass(frozen=True, slots=True)
class Address:
    """A host, an IPv6 one without its brackets, and a port; port 0 is any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `HOST:PORT`; no host means every interface. Raises ValueError saying what would be right."""
        host, colon, port = text.strip().rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        plain = ":" not in host and "[" not in host and "]" not in host
        number = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
        if not colon or not (bracketed or plain) or not number:
            raise ValueError(f"{quoted(text)} is no HOST:PORT, such as 127.0.0.1:9090 or [::]:9090")
        return cls(host[1:-1] if bracketed else host or "::", int(port))

    def with_port(self, port: int) -> Address:
        """The same host with the port that was really taken."""
        return Address(self.host, port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
