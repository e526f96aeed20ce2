"""The way to a real API server from within a pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.errors import ApiError
from scaler.cluster.resources import PODS
from tests.cluster.control_plane import ControlPlane

pytestmark = pytest.mark.toolchain


@pytest.fixture
def account(api_server: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a pod's own account, which may list pods, and an environment as in a pod."""
    api_server.kubectl("create", "role", "pods", "-n", namespace, "--verb=list", "--resource=pods")
    subject = f"--serviceaccount={namespace}:default"
    api_server.kubectl("create", "rolebinding", "pods", "-n", namespace, "--role=pods", subject)
    (tmp_path / "token").write_text(api_server.token(namespace, "default"))
    (tmp_path / "ca.crt").write_text(api_server.authority.certificate.read_text())
    (tmp_path / "namespace").write_text(namespace)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api_server.port))
    monkeypatch.setattr("scaler.cluster.connection._ACCOUNT", tmp_path)
    return tmp_path


async def test_pods_own_account_is_used(account: Path, namespace: str) -> None:
    async with await ApiClient.connect() as client:
        assert client.namespace == namespace
        assert (await client.list(PODS, namespace))["items"] == []
        with pytest.raises(ApiError, match=rf"^system:serviceaccount:{namespace}:default may not get pods x in namesp"):
            await client.get(PODS, namespace, "x")


async def test_token_that_is_refused_is_read_anew(account: Path, namespace: str) -> None:
    good = (account / "token").read_text()
    (account / "token").write_text(good[:-8])
    async with await ApiClient.connect() as client:
        (account / "token").write_text(good)
        assert (await client.list(PODS, namespace))["items"] == []
