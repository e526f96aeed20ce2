"""Pods behind TLS and tokens: what the operator's files say is what is used, also after they change."""

from __future__ import annotations

import os
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from scaler.exposition.sample import Sample
from scaler.sources.access import Access
from scaler.sources.pods import PodSource
from scaler.sources.source import ReadOptions
from tests.cluster.certificates import Authority, KeyPair
from tests.fleet.web import SOON, PodServer, filterable, page

HTTPS = ReadOptions(scheme="https")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority", "private authority")


@pytest.fixture
def by_name(authority: Authority) -> KeyPair:
    """The usual certificate: it names a service, not the pod's IP address."""
    return authority.issue("service", "chat", hosts=["chat.prod.svc"])


def served_with(pair: KeyPair, clients_of: Authority | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    if clients_of is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients_of.certificate)
    return context


@asynccontextmanager
async def world(access: Access, tls: ssl.SSLContext | None = None):
    async with AsyncExitStack() as stack:
        pod = await stack.enter_async_context(PodServer(filterable, tls=tls))
        source = PodSource(access)
        stack.push_async_callback(source.close)
        yield source, pod


async def outcome(source: PodSource, pod: PodServer, options: ReadOptions = HTTPS, uid: str = "u0"):
    return (await source.sample([pod.endpoint(uid=uid)], options, SOON))["chat-0"]


async def test_a_private_authority_is_trusted_when_the_operator_names_it(
    authority: Authority, by_name: KeyPair
) -> None:
    access = Access(ca_file=authority.certificate, server_name="chat.prod.svc")
    async with world(access, served_with(by_name)) as (source, pod):
        said = [await outcome(source, pod) for _ in range(3)]

        assert all(isinstance(sample, Sample) for sample in said)
        assert pod.connections == 1


async def test_a_certificate_for_the_address_needs_no_server_name(authority: Authority) -> None:
    pair = authority.issue("pod", "pod", hosts=["127.0.0.1"])
    async with world(Access(ca_file=authority.certificate), served_with(pair)) as (source, pod):
        assert isinstance(await outcome(source, pod), Sample)


@pytest.mark.parametrize(
    ("known", "server_name", "reason"),
    [
        (False, "chat.prod.svc", "unable to get local issuer certificate"),
        (True, "other.prod.svc", "Hostname mismatch"),
        (True, None, "IP address mismatch"),
    ],
)
async def test_a_certificate_of_anybody_else_is_refused(
    authority: Authority, by_name: KeyPair, known: bool, server_name: str | None, reason: str
) -> None:
    access = Access(ca_file=authority.certificate if known else None, server_name=server_name)
    async with world(access, served_with(by_name)) as (source, pod):
        said = await outcome(source, pod)

        assert said.reason.startswith("the certificate was refused: ")
        assert reason in said.reason
        assert pod.asked == []


async def test_a_pod_may_ask_for_a_client_certificate(authority: Authority, by_name: KeyPair) -> None:
    client = authority.issue("client", "vllm-scaler")
    with_certificate = Access(
        ca_file=authority.certificate,
        server_name="chat.prod.svc",
        client_cert_file=client.certificate,
        client_key_file=client.key,
    )
    async with world(with_certificate, served_with(by_name, authority)) as (source, pod):
        assert isinstance(await outcome(source, pod), Sample)

    without = Access(ca_file=authority.certificate, server_name="chat.prod.svc")
    async with world(without, served_with(by_name, authority)) as (source, pod):
        assert not isinstance(await outcome(source, pod), Sample)


async def test_a_new_authority_is_trusted_without_a_restart(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old", "old"), Authority(tmp_path / "new", "new")
    ca_file = tmp_path / "ca.crt"
    ca_file.write_bytes(old.certificate.read_bytes())
    pair = new.issue("pod", "pod", hosts=["127.0.0.1"])
    async with world(Access(ca_file=ca_file), served_with(pair)) as (source, pod):
        assert "certificate was refused" in (await outcome(source, pod)).reason

        replace(ca_file, new.certificate.read_bytes())

        assert isinstance(await outcome(source, pod), Sample)


def replace(file: Path, content: bytes) -> None:
    """Swap a file at once, as a mounted Secret is."""
    beside = file.with_suffix(".new")
    beside.write_bytes(content)
    os.replace(beside, file)


async def test_the_token_is_sent_and_follows_its_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with world(Access(bearer_token_file=token)) as (source, pod):
        await outcome(source, pod, ReadOptions())
        replace(token, b"second\n")
        await outcome(source, pod, ReadOptions())
        token.unlink()
        await outcome(source, pod, ReadOptions())

        sent = [request.headers["Authorization"] for request in pod.asked]
        assert sent == ["Bearer first", "Bearer second", "Bearer second"], "the last good token stays"


async def test_a_token_that_never_was_there_is_named(tmp_path: Path) -> None:
    async with world(Access(bearer_token_file=tmp_path / "token")) as (source, pod):
        said = await outcome(source, pod, ReadOptions())

        assert said.reason.startswith("the scaler's own TLS or secret file cannot be used: ")
        assert str(tmp_path / "token") in said.reason
        assert pod.asked == []


async def test_a_user_and_a_password_are_sent(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("open sesame\n")
    async with world(Access(basic_user="Aladdin", basic_password_file=password)) as (source, pod):
        await outcome(source, pod, ReadOptions())

        assert pod.asked[0].headers["Authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basic_user": "me"}, "basic_user and basic_password_file go together"),
        (
            {"basic_user": "me", "basic_password_file": Path("p"), "bearer_token_file": Path("t")},
            "basic_user and bearer_token_file exclude each other",
        ),
    ],
)
def test_secrets_that_contradict_each_other_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Access(**options)


async def test_a_plain_pod_asked_over_tls_is_unknown() -> None:
    async with PodServer(page) as pod:
        source = PodSource()
        said = await source.sample([pod.endpoint()], HTTPS, 5.0)
        await source.close()

    assert said["chat-0"].reason.startswith("TLS failed: ")
