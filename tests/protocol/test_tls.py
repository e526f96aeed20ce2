"""TLS and mutual TLS, with certificates that change under a running server as a mounted Secret's do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import structlog

from scaler.serving.tls import Certificates, TlsError, TlsFiles
from tests.cluster.certificates import Authority
from tests.protocol.world import Fleet, Keda, hosted


@dataclass
class Secret:
    """A Secret as the kubelet mounts it: files behind a link that is swapped when the Secret changes."""

    mount: Path

    def __post_init__(self) -> None:
        self.mount.mkdir()
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (self.mount / name).symlink_to(Path("..data") / name)

    def change(self, version: str, certificate: bytes, key: bytes, ca: bytes) -> None:
        """Put a new version in place, all files at once."""
        folder = self.mount / f"..{version}"
        folder.mkdir()
        for name, content in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", ca)):
            (folder / name).write_bytes(content)
        link = self.mount / "..data_tmp"
        link.symlink_to(folder.name)
        link.rename(self.mount / "..data")

    @property
    def mutual(self) -> TlsFiles:
        return TlsFiles(self.mount / "tls.crt", self.mount / "tls.key", self.mount / "ca.crt")

    @property
    def one_sided(self) -> TlsFiles:
        return TlsFiles(self.mount / "tls.crt", self.mount / "tls.key")


class Side:
    """One authority and what it issued for a server and a client."""

    def __init__(self, folder: Path, name: str) -> None:
        authority = Authority(folder / name, name)
        server = authority.issue("server", "vllm-scaler", hosts=["127.0.0.1"])
        client = authority.issue("client", "keda")
        self.ca = authority.certificate.read_bytes()
        self.server = server.certificate.read_bytes(), server.key.read_bytes()
        self.client = client.key.read_bytes(), client.certificate.read_bytes()


@pytest.fixture
def old(tmp_path: Path) -> Side:
    return Side(tmp_path, "old")


@pytest.fixture
def new(tmp_path: Path) -> Side:
    return Side(tmp_path, "new")


@pytest.fixture
def secret(tmp_path: Path, old: Side) -> Secret:
    secret = Secret(tmp_path / "tls")
    secret.change("1", *old.server, old.ca)
    return secret


async def connects(port: int, server_ca: bytes, client: Side | None = None) -> bool:
    """Whether a new connection is made and a call answered."""
    key, certificate = client.client if client else (None, None)
    credentials = grpc.ssl_channel_credentials(server_ca, key, certificate)
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        try:
            await Keda(channel).spec()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            return False
        return True


async def test_with_tls_only_those_who_trust_its_ca_connect(fleet: Fleet, secret: Secret, old: Side, new: Side) -> None:
    async with hosted(fleet, tls=secret.one_sided) as host:
        assert await connects(host.grpc_address.port, old.ca)
        assert not await connects(host.grpc_address.port, new.ca)


async def test_with_mutual_tls_only_clients_of_its_ca_connect(
    fleet: Fleet, secret: Secret, old: Side, new: Side
) -> None:
    async with hosted(fleet, tls=secret.mutual) as host:
        assert await connects(host.grpc_address.port, old.ca, old)
        assert not await connects(host.grpc_address.port, old.ca, new)
        assert not await connects(host.grpc_address.port, old.ca)


async def test_a_changed_secret_is_in_force_for_the_next_connection(
    fleet: Fleet, secret: Secret, old: Side, new: Side
) -> None:
    async with hosted(fleet, tls=secret.mutual) as host:
        port = host.grpc_address.port
        assert await connects(port, old.ca, old)
        secret.change("2", *new.server, new.ca)
        assert await connects(port, new.ca, new)
        assert not await connects(port, old.ca, old)


async def test_connections_that_stand_go_on_when_the_certificate_changes(
    fleet: Fleet, secret: Secret, old: Side, new: Side
) -> None:
    async with hosted(fleet, tls=secret.one_sided) as host:
        credentials = grpc.ssl_channel_credentials(old.ca)
        async with grpc.aio.secure_channel(str(host.grpc_address), credentials) as channel:
            keda = Keda(channel)
            await keda.spec()
            secret.change("2", *new.server, new.ca)
            assert await connects(host.grpc_address.port, new.ca)
            await keda.spec()


async def test_a_broken_new_pair_keeps_the_old_one_and_is_told_once(
    fleet: Fleet, secret: Secret, old: Side, new: Side
) -> None:
    async with hosted(fleet, tls=secret.one_sided) as host:
        port = host.grpc_address.port
        with structlog.testing.capture_logs() as logs:
            secret.change("2", new.server[0], old.server[1], new.ca)  # a certificate with another one's key
            assert await connects(port, old.ca)
            assert await connects(port, old.ca)
        refused = [line for line in logs if "refused" in line["event"]]
        assert len(refused) == 1
        assert "tls.crt" in refused[0]["reason"]
        secret.change("3", *new.server, new.ca)
        assert await connects(port, new.ca)


async def test_a_leader_that_stood_by_and_leads_again_still_speaks_tls(fleet: Fleet, secret: Secret, old: Side) -> None:
    async with hosted(fleet, tls=secret.mutual) as host:
        await host.stand_by()
        await host.lead()
        assert await connects(host.grpc_address.port, old.ca, old)
        assert not await connects(host.grpc_address.port, old.ca)


async def test_a_file_that_is_gone_keeps_the_old_pair(fleet: Fleet, secret: Secret, old: Side) -> None:
    async with hosted(fleet, tls=secret.mutual) as host:
        (secret.mount / "..data").unlink()
        assert await connects(host.grpc_address.port, old.ca, old)


@pytest.mark.parametrize(
    ("certificate", "key", "ca", "told"),
    [
        ("garbage", None, None, "tls.crt"),
        (None, "garbage", None, "tls.key"),
        (None, "", None, "tls.key"),
        (None, None, "garbage", "ca.crt"),
    ],
)
def test_files_that_cannot_be_used_at_the_start_are_named(
    secret: Secret, old: Side, certificate: str | None, key: str | None, ca: str | None, told: str
) -> None:
    secret.change(
        "2",
        old.server[0] if certificate is None else certificate.encode(),
        old.server[1] if key is None else key.encode(),
        old.ca if ca is None else ca.encode(),
    )
    with pytest.raises(TlsError, match=told):
        Certificates(secret.mutual)


def test_a_missing_file_is_named_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match=r"nowhere\.crt: No such file"):
        Certificates(TlsFiles(tmp_path / "nowhere.crt", tmp_path / "nowhere.key"))
