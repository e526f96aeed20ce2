"""A certificate authority for tests: the certificates by which programs of one machine know each other."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """PEM files of a certificate and its private key."""

    certificate: Path
    key: Path


class Authority:
    """A CA of its own; everything it makes lies in one folder as PEM files."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(self._name, self._name, self._key).add_extension(constraint, critical=True)
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def issue(
        self, file: str, common_name: str, *, organization: str | None = None, hosts: Sequence[str] = ()
    ) -> KeyPair:
        """A certificate for both ends of a TLS connection, in ``FILE.crt`` and ``FILE.key``.

        To Kubernetes the common name is a user and the organization a group; ``hosts`` are the DNS names and
        IP addresses that a server answers to.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = _builder(_name(common_name, organization), self._name, key).add_extension(uses, critical=False)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        pair = KeyPair(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        pair.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        pair.key.write_bytes(_private_pem(key))
        return pair


def write_signing_key(private: Path, public: Path) -> None:
    """A key pair without a certificate, as ServiceAccount tokens are signed with."""
    key = ec.generate_private_key(ec.SECP256R1())
    private.write_bytes(_private_pem(key))
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _VALID)  # a test may put a program's clock back
        .not_valid_after(now + _VALID)
    )


def _name(common_name: str, organization: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization is not None:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
