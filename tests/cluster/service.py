"""What a Service of Kubernetes does for the replicas of a scaler: one address that leads to the one that is ready."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

from tests.cluster.local_pod import LocalPod


class Service:
    """A context manager. A connection goes to the replica that is ready when it is made, and stays there for good.

    While none is ready, connections end as soon as they are made.
    """

    def __init__(self, *replicas: LocalPod) -> None:
        self._replicas = replicas
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._connections: set[socket.socket] = set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="service", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        _end(self._listener)  # wakes the thread that waits for a connection
        self._listener.close()
        self.cut()

    def ready(self) -> LocalPod | None:
        """The replica to which a new connection goes."""
        return next((replica for replica in self._replicas if replica.is_ready()), None)

    def cut(self) -> None:
        """End every connection, as a network that breaks."""
        for connection in tuple(self._connections):
            _end(connection)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            replica = self.ready()
            if replica is None:
                return
            host, port = replica.grpc.rsplit(":", 1)
            with socket.create_connection((host, int(port))) as server:
                ends = {client, server}
                self._connections |= ends
                back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server)
                back.join()
                self._connections -= ends


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Until either side ends; then both have."""
    with suppress(OSError):
        while data := source.recv(2**16):
            sink.sendall(data)
    _end(source)
    _end(sink)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
