"""How pages behind TLS or a token are reached: the operator's files, read again when they change."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Access:
    """What the operator lets us show to pods, the same for every target. Files may change while we run."""

    ca_file: Path | None = None
    """PEM file of the authorities that sign the pods' certificates; None trusts the system's."""
    server_name: str | None = None
    """The name to look for in certificates. Pods are asked by IP address, which few certificates carry."""
    client_cert_file: Path | None = None
    client_key_file: Path | None = None
    """For pods that ask for a client certificate; the key may also stand in the certificate's file."""
    bearer_token_file: Path | None = None
    """Sent as `Authorization: Bearer …` with every request. All pods that are read see it: it should open their
    metrics and nothing else."""
    basic_user: str | None = None
    basic_password_file: Path | None = None
    """Sent as `Authorization: Basic …`; instead of a bearer token."""

    def __post_init__(self) -> None:
        if (self.basic_user is None) != (self.basic_password_file is None):
            raise ValueError("basic_user and basic_password_file go together")
        if self.basic_user is not None and self.bearer_token_file is not None:
            raise ValueError("basic_user and bearer_token_file exclude each other")


class Reloaded(Generic[T]):
    """A value made from files, made again when one of them changes.

    While a changed file cannot be used (half written, gone for a moment) the last good value stays.
    """

    def __init__(self, files: tuple[Path, ...], load: Callable[[], T]) -> None:
        self._files = files
        self._load = load
        self._stamp: tuple[tuple[int, int, int], ...] | None = None
        self._value: T

    def get(self) -> T:
        """Return the value. Raises OSError (ssl.SSLError is one) when it could never be made."""
        try:
            # Kubernetes swaps mounted files by a symbolic link: the inode tells when the time does not.
            stamp = tuple((s.st_ino, s.st_mtime_ns, s.st_size) for s in map(Path.stat, self._files))
            if stamp != self._stamp:
                self._value, self._stamp = self._load(), stamp
        except OSError:
            if self._stamp is None:
                raise
        return self._value


def authorization(access: Access) -> Reloaded[str | None]:
    """Return the `Authorization` header's value, None where the operator gave no secret."""
    token, user, password = access.bearer_token_file, access.basic_user, access.basic_password_file
    if token is not None:
        return Reloaded((token,), lambda: f"Bearer {_secret(token)}")
    if user is not None and password is not None:
        return Reloaded((password,), lambda: f"Basic {_base64(f'{user}:{_secret(password)}')}")
    return Reloaded((), lambda: None)


def tls_context(access: Access) -> Reloaded[ssl.SSLContext]:
    """Return the TLS side of `access`. Certificates are always verified: an answer moves replicas, and is paid for."""

    def load() -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=access.ca_file)
        if access.client_cert_file is not None:
            context.load_cert_chain(access.client_cert_file, access.client_key_file)
        return context

    files = (access.ca_file, access.client_cert_file, access.client_key_file)
    return Reloaded(tuple(file for file in files if file is not None), load)


def _secret(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace").strip()


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
