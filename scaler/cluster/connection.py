"""The way to the API server: where it is, who we are, and a session that says so.

Configuration, credentials and TLS are kubernetes_asyncio's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.client.rest import RESTClientObject
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader
from kubernetes_asyncio.config.kube_config import load_kube_config

from scaler.cluster.errors import ApiError, ConfigurationError, one_line

_CONNECT_TIMEOUT_S = 5.0
_DEFAULT_KUBECONFIG = Path("~/.kube/config")
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST = "KUBERNETES_SERVICE_HOST"


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request."""

    what: str
    """In words, to follow "cannot"."""
    method: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    content_type: str = "application/json"
    total_s: float | None = None
    """For the whole answer."""
    silence_s: float | None = None
    """For each part of it."""


class Connection:
    """A session with one set of credentials; tokens of a pod's own account are refreshed by themselves."""

    def __init__(self, configuration: Configuration, namespace: str) -> None:
        configuration.connection_pool_maxsize = 0  # no limit: each watch holds a connection
        # Authorities made by older tools lack extensions that Python 3.13 insists on and Go does not.
        configuration.disable_strict_ssl_verification = True
        self.server = str(configuration.host)
        self.namespace = namespace
        self._configuration = configuration
        self._rest = RESTClientObject(configuration)

    @classmethod
    async def open(cls, kubeconfig: Path | None, context: str | None = None) -> Self:
        """Find the cluster: `kubeconfig`, else $KUBECONFIG, else the pod's own account, else ~/.kube/config.

        A `context` is one of a kubeconfig file. Sends nothing yet. Raises ConfigurationError.
        """
        if kubeconfig is None and (named := os.environ.get("KUBECONFIG")):
            kubeconfig = Path(named)
        if kubeconfig is None and context is None and _HOST in os.environ:
            return cls._in_cluster()
        return await cls._by_file(_existing(kubeconfig or _DEFAULT_KUBECONFIG), context)

    @classmethod
    def _in_cluster(cls) -> Self:
        configuration = Configuration()
        try:
            loader = InClusterConfigLoader(str(_ACCOUNT / "token"), str(_ACCOUNT / "ca.crt"))
            loader.load_and_set(configuration)
            return cls(configuration, (_ACCOUNT / "namespace").read_text(encoding="utf-8").strip())
        except (ConfigException, OSError) as error:
            raise ConfigurationError(f"this pod's own account cannot be used: {one_line(error)}") from None

    @classmethod
    async def _by_file(cls, path: Path, context: str | None) -> Self:
        configuration = Configuration()
        try:
            loader = await load_kube_config(str(path), context, configuration, persist_config=False)
            current: Any = loader.current_context
            return cls(configuration, current["context"].get("namespace") or "default")
        except Exception as error:  # the library also asserts and indexes its way through the file
            raise ConfigurationError(f"kubeconfig {path} cannot be used: {one_line(error)}") from None

    async def send(self, call: Call) -> aiohttp.ClientResponse:
        """Send a request and return the answer as soon as it begins. Raises ApiError when none does."""
        headers = {"Accept": "application/json", "User-Agent": "vllm-scaler", "Content-Type": call.content_type}
        try:
            if token := await self._configuration.get_api_key_with_prefix("BearerToken"):
                headers["Authorization"] = token
            response: aiohttp.ClientResponse = await self._rest.request(
                call.method,
                f"{self.server}{call.path}",
                query_params=dict(call.parameters),
                headers=headers,
                body=call.body,
                _preload_content=False,
                _request_timeout=aiohttp.ClientTimeout(
                    total=call.total_s, sock_connect=_CONNECT_TIMEOUT_S, sock_read=call.silence_s
                ),
            )
        except TimeoutError:
            raise ApiError(f"cannot {call.what}: the API server {self.server} does not answer in time") from None
        except (aiohttp.ClientError, OSError, ConfigException) as error:
            raise ApiError(f"cannot {call.what}: no way to the API server {self.server}: {one_line(error)}") from None
        except RuntimeError as error:  # the session was closed meanwhile
            raise ApiError(f"cannot {call.what}: {one_line(error)}") from None
        return response

    async def close(self) -> None:
        """Close all connections, watches included."""
        await self._rest.close()


def _existing(kubeconfig: Path) -> Path:
    path = kubeconfig.expanduser()
    if not path.is_file():
        raise ConfigurationError(
            f"no cluster: this is not a pod ({_HOST} is not set) and there is no kubeconfig {path}; name one by "
            "--kubeconfig or KUBECONFIG"
        )
    return path
