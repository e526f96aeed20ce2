"""TLS and mutual TLS with certificates that are read anew when their files change.

The files are looked at when a client connects, which happens rarely, so that nothing has to watch them. A new
pair that is not whole (half written, key and certificate of different pairs, no certificate at all) is refused
with one line in the log, and the old pair stays in use until the files are right.
"""

from __future__ import annotations

import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

import grpc
import structlog

log = structlog.get_logger(__name__)


class TlsError(Exception):
    """A certificate, key or CA file cannot be used: the message names the file and says what is wrong."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the PEM files are. With a client CA, clients must show a certificate that it signed (mutual TLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class _Pem:
    certificate: bytes
    key: bytes
    client_ca: bytes | None

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        chain = [(self.key, self.certificate)]
        return grpc.ssl_server_certificate_configuration(chain, root_certificates=self.client_ca)


class Certificates:
    """The pair in use, and what was wrong with the last one refused, so that the log says it once."""

    def __init__(self, files: TlsFiles) -> None:
        """Raises TlsError when the files cannot be used."""
        self._files = files
        self._used = _read(files)
        _check(files, self._used)
        self._refused = ""
        self._lock = threading.Lock()  # handshakes come from gRPC's own threads

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials for one server, which follow the files."""
        return grpc.dynamic_ssl_server_credentials(
            self._used.configuration(),
            self._newer,  # type: ignore[arg-type]  # the stub forgets None, which means no change
            require_client_authentication=self._files.client_ca is not None,
        )

    def _newer(self) -> grpc.ServerCertificateConfiguration | None:
        """What the next handshake shall use, None to go on with the pair in use."""
        with self._lock:
            try:
                found = _read(self._files)
                if found == self._used:
                    return None
                _check(self._files, found)
            except TlsError as error:
                if self._refused != str(error):
                    log.error("new certificate refused, the old one stays in use", reason=str(error))
                self._refused = str(error)
                return None
            self._used, self._refused = found, ""
            log.info("certificate reloaded", file=str(self._files.certificate))
            return found.configuration()


def _read(files: TlsFiles) -> _Pem:
    return _Pem(
        certificate=_bytes(files.certificate),
        key=_bytes(files.key),
        client_ca=_bytes(files.client_ca) if files.client_ca else None,
    )


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise TlsError(f"{file}: {error.strerror}") from error


def _check(files: TlsFiles, pem: _Pem) -> None:
    """Raise TlsError unless certificate and key belong together and the CA holds certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        pair = f"{files.certificate} and {files.key}"
        raise TlsError(f"{pair} are no PEM certificate with its key: {_reason(error)}") from error
    if pem.client_ca is not None:
        try:
            context.load_verify_locations(cadata=pem.client_ca.decode("ascii", "replace"))
        except ssl.SSLError as error:
            raise TlsError(f"{files.client_ca} holds no PEM certificate: {_reason(error)}") from error
    if _read(files) != pem:
        raise TlsError(f"{files.certificate} or {files.key} changed while it was read")


def _no_password() -> str:
    raise ValueError("the key is encrypted; a key without a passphrase is needed")


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
