"""TLS between KEDA and the scaler, as a TriggerAuthentication and the chart's values ask for it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc
import pytest
import yaml

from tests.cluster.asking import Asking
from tests.cluster.certificates import Authority
from tests.cluster.control_plane import Manifest
from tests.cluster.keda import KedaCluster
from tests.cluster.local_pod import LocalPod
from tests.cluster.release import Release
from tests.cluster.role import POLICIES, Role
from tests.cluster.service import Service
from tests.cluster.stage import Model, Stage

pytestmark = pytest.mark.toolchain

NOT_REACHED = "no metric specs returned from scalers"
"""What KEDA has in the condition of a ScaledObject whose scaler does not answer; the reason is in its log."""

Files = Mapping[str, str]
"""The data of a Secret."""

PARAMETERS = {"tlsClientCert": "tls.crt", "tlsClientKey": "tls.key", "caCert": "ca.crt"}
"""Of a TriggerAuthentication, and the file for each."""


class Side:
    """An authority, and what it issued to the scaler and to KEDA."""

    def __init__(self, folder: Path, name: str) -> None:
        self._authority = Authority(folder / name, name)
        client = self._authority.issue("client", "keda")
        self.ca: Files = {"ca.crt": self._authority.certificate.read_text()}
        self.client: Files = {"tls.crt": client.certificate.read_text(), "tls.key": client.key.read_text()}
        self.renew()

    def renew(self) -> None:
        """Issue another certificate to the scaler."""
        server = self._authority.issue("server", "vllm-scaler", hosts=["127.0.0.1"])
        self.server: Files = {"tls.crt": server.certificate.read_text(), "tls.key": server.key.read_text()}

    def credentials(self) -> grpc.ChannelCredentials:
        """KEDA's, to connect as it does."""
        return grpc.ssl_channel_credentials(
            *(file.encode() for file in (self.ca["ca.crt"], self.client["tls.key"], self.client["tls.crt"]))
        )


@dataclass(frozen=True, kw_only=True)
class Secured(Role):
    """KEDA looks for its scaler at an address of its own, with a TriggerAuthentication."""

    address: str
    authentication: str

    def scaled_object(self, address: str) -> Manifest:
        made = Role.scaled_object(self, self.address)
        (trigger,) = made["spec"]["triggers"]
        trigger["metadata"]["enableTLS"] = "true"
        trigger["authenticationRef"] = {"name": self.authentication}
        return made


@dataclass(frozen=True)
class Scalers:
    """Two of them, with certificates of `ours` that are good for 127.0.0.1."""

    ours: Side
    mutual: LocalPod
    """Lets in only clients of `ours`."""
    one_sided: LocalPod
    service: Service
    """Leads to the mutual one."""
    stage: Stage


@pytest.fixture
def scalers(keda_cluster: KedaCluster, keda_namespace: str, tmp_path: Path) -> Iterator[Scalers]:
    ours = Side(tmp_path, "ours")
    values = {
        "watchNamespaces": [keda_namespace],
        "policies": {name: dict(policy) for name, policy in POLICIES.items()},
    }
    one_sided_tls = {"secretName": "server"}
    mutual_tls = {"secretName": "server", "clientCA": {"secretName": "clients"}}
    server = secret("server", ours.server, "kubernetes.io/tls")
    keda_cluster.apply(server, secret("clients", ours.ca), namespace=keda_namespace)
    with Release(keda_cluster, keda_namespace) as release:
        release.install(yaml.safe_dump({**values, "tls": mutual_tls}))
        mutual = release.run(0)
        release.upgrade(yaml.safe_dump({**values, "tls": one_sided_tls}))
        one_sided = release.run(1)
        for scaler in (mutual, one_sided):
            keda_cluster.wait_for("a ready scaler", scaler.is_ready)
        with (
            Service(mutual) as service,
            Asking(service.address, ours.credentials()) as asking,
            Stage(keda_cluster, keda_namespace, asking) as stage,
        ):
            yield Scalers(ours, mutual, one_sided, service, stage)


def secret(name: str, files: Files, kind: str = "Opaque") -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind, "stringData": files}


def authentication(name: str, files: Files) -> Manifest:
    """A TriggerAuthentication of those files of the Secret of its name."""
    keys = [{"parameter": parameter, "name": name, "key": key} for parameter, key in PARAMETERS.items() if key in files]
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "TriggerAuthentication",
        "metadata": {"name": name},
        "spec": {"secretTargetRef": keys},
    }


def present(scaler: LocalPod, side: Side) -> None:
    """Gives a scaler other files in place of those it has, one after the other, as an editor would."""
    options = dict(argument.lstrip("-").partition("=")[::2] for argument in scaler.arguments)
    Path(options["tls-cert"]).write_text(side.server["tls.crt"])
    Path(options["tls-key"]).write_text(side.server["tls.key"])
    Path(options["client-ca"]).write_text(side.ca["ca.crt"])


def test_keda_reaches_the_scaler_by_tls_and_where_either_refuses_the_other_the_count_stays(
    scalers: Scalers, tmp_path: Path
) -> None:
    stage, ours, theirs = scalers.stage, scalers.ours, Side(tmp_path, "theirs")
    for name, files in {
        "keda": {**ours.ca, **ours.client},
        "nobody": ours.ca,
        "stranger": {**ours.ca, **theirs.client},
        "distrust": {**theirs.ca, **ours.client},
    }.items():
        stage.apply(secret(name, files), authentication(name, files))
    door, elsewhere = scalers.service.address, f"localhost:{scalers.service.port}"
    mutual, one_sided, *refused = models = stage.play(
        Secured(name="mutual", replicas=2, users=2, address=door, authentication="keda"),
        Secured(name="one-sided", replicas=2, users=2, address=scalers.one_sided.grpc, authentication="nobody"),
        Secured(name="misnamed", replicas=2, users=2, address=elsewhere, authentication="keda"),
        Secured(name="distrust", replicas=2, users=2, address=door, authentication="distrust"),
        Secured(name="nobody", replicas=2, users=2, address=door, authentication="nobody"),
        Secured(name="stranger", replicas=2, users=2, address=door, authentication="stranger"),
    )
    for model in models:
        model.users = 3
    mutual.goes(2, 3)
    one_sided.goes(2, 3)
    for model in refused:
        stage.wait_for(f"a condition of {model.name}", partial(is_not_reached, model))
        assert model.went(2)
    for model in (mutual, one_sided):
        assert not is_not_reached(model)


def test_certificates_and_their_authority_may_change_under_way(scalers: Scalers, tmp_path: Path) -> None:
    stage, ours, new = scalers.stage, scalers.ours, Side(tmp_path, "new")
    files = {**ours.ca, **ours.client}
    stage.apply(secret("keda", files), authentication("keda", files))
    role = Secured(
        name="mutual", replicas=2, users=2, address=scalers.service.address, authentication="keda", polling_s=3600
    )
    (model,) = stage.play(role)
    model.users = 3
    model.goes(2, 3)

    ours.renew()
    present(scalers.mutual, ours)
    scalers.service.cut()  # a connection that stands keeps what it began with
    cut_at = time.time()
    stage.wait_for("KEDA's stream by the new certificate", lambda: model.last_active() > cut_at)
    assert shown(scalers.mutual).strip() == ours.server["tls.crt"].strip()

    stage.apply(secret("keda", {**new.ca, **new.client}))
    present(scalers.mutual, new)
    scalers.service.cut()
    model.users = 5
    model.goes(2, 3, 5)  # of a new CA KEDA takes notice with the HPA's next question; its streams keep the old one
    assert shown(scalers.mutual).strip() == new.server["tls.crt"].strip()


def is_not_reached(model: Model) -> bool:
    return NOT_REACHED in model.described()


def shown(scaler: LocalPod) -> str:
    """The certificate that a scaler shows to whoever comes."""
    host, port = scaler.grpc.rsplit(":", 1)
    return ssl.get_server_certificate((host, int(port)))
