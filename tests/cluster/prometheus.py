"""A real Prometheus: what runs it, and what it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.cluster import toolchain


class Prometheus:
    """One with a configuration of its own, in a folder that it makes.

    Attributes: ``address``, where it listens; ``command``, for whoever runs it.
    """

    def __init__(self, folder: Path, port: int, configuration: Mapping[str, Any]) -> None:
        folder.mkdir()
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(configuration))
        self.address = f"127.0.0.1:{port}"
        self.command: list[str | Path] = [
            toolchain.binary("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
        ]

    def is_ready(self) -> bool:
        """Whether it answers queries."""
        try:
            return httpx.get(f"http://{self.address}/-/ready", trust_env=False).is_success
        except httpx.TransportError:
            return False

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API. Raises httpx.HTTPStatusError with what it has against the question."""
        reply = httpx.get(f"http://{self.address}/api/v1/{path}", params=parameters, trust_env=False, timeout=30.0)
        if not reply.is_success:
            raise httpx.HTTPStatusError(reply.text, request=reply.request, response=reply)
        return reply.json()["data"]

    def series(self, query: str) -> list[dict[str, Any]]:
        """What an instant query finds: series with `metric` and `value`."""
        found: list[dict[str, Any]] = self.ask("query", query=query)["result"]
        return found

    def value(self, query: str) -> float | None:
        """The value of an instant query's only series; None where it has none."""
        found = self.series(query)
        return float(found[0]["value"][1]) if found else None
